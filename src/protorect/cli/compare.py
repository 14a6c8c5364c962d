"""Compare methods on the same episodes of every feature set, in three settings.

The settings are balanced classes, unbalanced classes, and distractor classes among the queries.
Prints accuracy with 95 % intervals, speed, mean ranks and the critical difference between ranks.

FEATURES is what `protorect extract` wrote, or any .npz with features (n, dim) and labels (n,). A
method may be a function of your own, FILE.py:function, as described by `protorect evaluate --help`.
"""

import argparse
from pathlib import Path
from typing import Any

from protorect._utils.files import write_text
from protorect._utils.versions import versions
from protorect.cli.arguments import add_parameters, given
from protorect.cli.output import check_outputs, print_list, print_table
from protorect.cli.progress import progress_bar
from protorect.evaluation.compare import ComparisonSampling, compare
from protorect.evaluation.evaluate import SHOTS
from protorect.evaluation.own_method import resolve_methods
from protorect.methods import METHODS
from protorect.report.comparison import comparison_json, comparison_page, comparison_tables
from protorect.report.page import render_html, render_markdown

SAMPLING = ("way", "query", "episodes", "seed", "dirichlet", "distractors")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("features", metavar="FEATURES", type=Path, nargs="+")
    add("--method", action="append", metavar="NAME", help="repeat for several; all if not given")
    add("--shot", type=int, action="append", dest="shots", metavar="N", help="repeat (1 and 5)")
    add_parameters(parser, ComparisonSampling, *SAMPLING)
    add("--json", type=Path, metavar="OUT.json", help="write the results")
    add("--html", type=Path, metavar="OUT.html", help="write a page with tables and plots")
    add("--markdown", type=Path, metavar="OUT.md", help="the same, its plots in a folder figures")
    add("--device", help="where to compute, as a torch device")


def run(options: argparse.Namespace) -> None:
    """Compare, print the tables, and write the requested files."""
    methods = resolve_methods(options.method or list(METHODS))
    check_outputs((options.json, options.html, options.markdown), tuple(options.features))
    names = _names(options.features)
    tables = dict(zip(names, options.features, strict=True))
    chosen = ComparisonSampling(**given(options, ComparisonSampling))
    sampling: dict[str, Any] = {"shot": options.shots or list(SHOTS)}
    sampling |= {name: getattr(chosen, name) for name in SAMPLING}
    with progress_bar("episodes") as progress:
        comparison = compare(tables, methods, **sampling, device=options.device, progress=progress)
    for table in comparison_tables(comparison):
        print_table(table)
    print_list("left out", list(comparison.skipped.values()))
    settings = {"features": names, **sampling, "versions": versions()}
    if options.json is not None:
        write_text(options.json, comparison_json(comparison, settings))
    if options.html is not None:
        write_text(options.html, render_html(comparison_page(comparison, settings)))
        print(options.html)
    if options.markdown is not None:
        page = comparison_page(comparison, settings)
        text, figures = render_markdown(page, f"figures/{options.markdown.stem}")
        for name, svg in figures.items():
            write_text(options.markdown.parent / name, svg)
        write_text(options.markdown, text)
        print(options.markdown)


def _names(paths: list[Path]) -> list[str]:
    """Names of the feature sets: the file names, or the paths where names are the same."""
    names = [path.stem if path.suffix == ".npz" else path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
