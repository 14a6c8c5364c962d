"""`protorect paper`: the paper's tables and figures, published against measured."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from protorect._utils.files import check_writable, write_text
from protorect.cli.output import check_outputs, show
from protorect.cli.progress import progress_bar
from protorect.errors import OptionError
from protorect.paper.document import documents, measured_tables, paper_page
from protorect.paper.experiments import EXPERIMENTS, Experiment, experiment
from protorect.paper.experiments import run as run_experiment
from protorect.paper.record import Record, load_records
from protorect.paper.sources import FeatureFolder, commands
from protorect.report.page import render_html

DESCRIPTION = """\
Measure the tables and figures of "Prototype Rectification for Few-Shot Learning" again, beside what
it published. NAME is an experiment: main, meta-dataset, ablation, backbones, tft, omniglot, cub,
higher-way, robust, figures, weights; all of them if none is named.

Features are looked for in a folder, under names such as omniglot-conv64-test.npz and
omniglot-conv64-val.npz, as `protorect extract` writes them. What is missing is left out and marked;
`protorect paper --list` shows the commands that would make it. Fine-tuning whole networks, in tft,
needs the packed pictures and the runs as well, under names such as omniglot and omniglot-conv64.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--list", action="store_true", help="show what can run, and how to make the rest runnable")
    add(
        "--features",
        type=Path,
        default=Path("features"),
        metavar="DIR",
        help="where the features are (%(default)s)",
    )
    add(
        "--data",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="where packed pictures are, for tft (%(default)s)",
    )
    add(
        "--runs",
        type=Path,
        default=Path("runs"),
        metavar="DIR",
        help="where runs are, for tft (%(default)s)",
    )
    add("--episodes", type=int, metavar="N", help="at most so many episodes (the protocol's)")
    add(
        "--fine-tuned-episodes",
        type=int,
        metavar="N",
        help="how many of them whole networks are fine-tuned on (100)",
    )
    add("--seed", type=int, default=0, help="the same seed draws the same episodes (%(default)s)")
    add("--results", type=Path, metavar="DIR", help="write NAME.json for each experiment")
    add(
        "--from-results",
        type=Path,
        metavar="DIR",
        help="measure nothing; take the results that are in this folder",
    )
    add("--html", type=Path, metavar="PAGE.html", help="write everything as one page")
    add(
        "--docs",
        type=Path,
        metavar="DIR",
        help="write results.md, weights.md and their figures",
    )


def run(options: argparse.Namespace) -> None:
    """List, or measure and show; write what was asked for."""
    chosen = [experiment(name) for name in dict.fromkeys(options.names)]
    if options.list:
        _list(chosen or list(EXPERIMENTS.values()), _folder(options))
        return
    _check(options)
    check_outputs([options.html])
    records = _records(chosen or list(EXPERIMENTS.values()), options)
    page = paper_page(records)
    for table in measured_tables(page, records):
        show(table)
    if options.html is not None:
        write_text(options.html, render_html(page))
        print(options.html)
    if options.docs is not None:
        trainings = (options.docs / "trainings.md").exists()
        for name, text in documents(page, records, trainings).items():
            write_text(options.docs / name, text)
            print(options.docs / name)


def _check(options: argparse.Namespace) -> None:
    if options.from_results is not None and (options.names or options.results is not None):
        raise OptionError(
            "--from-results measures nothing, so it takes neither names nor --results."
        )
    for name in ("episodes", "fine_tuned_episodes"):
        given = getattr(options, name)
        if given is not None and given < 2:
            raise OptionError(f"--{name.replace('_', '-')} is {given}; it must be 2 or more.")


def _records(chosen: list[Experiment], options: argparse.Namespace) -> list[Record]:
    """Measured now, each kept as soon as it is there; or those of a folder."""
    if options.from_results is not None:
        return load_records(options.from_results)
    records = []
    for one in chosen:
        if options.results is not None:
            check_writable(options.results / f"{one.name}.json")
        with progress_bar(one.name) as progress:
            record = run_experiment(
                one,
                _folder(options),
                episodes=options.episodes,
                fine_tuned=options.fine_tuned_episodes,
                seed=options.seed,
                progress=progress,
            )
        if record is None:
            print(
                f"{one.name}: no features in {options.features}; "
                f"`protorect paper {one.name} --list` shows how to make them",
                file=sys.stderr,
            )
            continue
        records.append(record)
        if options.results is not None:
            print(record.save(options.results))
    return records


def _folder(options: argparse.Namespace) -> FeatureFolder:
    return FeatureFolder(options.features, options.data, options.runs)


def _list(chosen: list[Experiment], folder: FeatureFolder) -> None:
    for one in chosen:
        there = [source for source in one.sources if folder.has(source)]
        rest = [source for source in one.sources if not folder.has(source)]
        named = ", ".join(source.name for source in there)
        state = f"can run on {named}" if there else "cannot run yet"
        tables = f" (Table {', '.join(map(str, one.tables))})" if one.tables else ""
        print(f"{one.name}: {one.title}{tables}\n  {state}")
        for source in rest:
            print(f"  {source.name} needs")
            for line in commands(source, folder, folder.missing(source)):
                print(f"    {line}")
        for source in there if one.on_pictures else ():
            if not folder.has_pictures(source):
                print(f"  {', '.join(one.on_pictures)} on {source.name} needs")
                for line in commands(source, folder, splits=()):
                    print(f"    {line}")
