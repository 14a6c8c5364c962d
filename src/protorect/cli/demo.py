"""See what prototype rectification does: tables, a page, and a sorted folder of photographs.

Measure the paper's Omniglot row on the test characters in the package, sort a hundred photographs
from three examples per class, and show both on one HTML page. The photographs are written to a
folder beside the page. Nothing is downloaded; it takes about a minute on two processors.
"""

import argparse
from pathlib import Path

from protorect._utils.files import check_writable, write_text
from protorect.cli.arguments import add_parameters, given
from protorect.cli.browser import open_page
from protorect.cli.output import print_table
from protorect.cli.progress import progress_bar
from protorect.demo.omniglot import DemoOptions, measure_omniglot
from protorect.demo.page import ablation_table, demo_page, paper_row
from protorect.demo.photographs import sort_photographs
from protorect.errors import OptionError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("--out", type=Path, default="protorect-demo.html", metavar="F.html", help="(%(default)s)")
    add("--no-open", dest="open", action="store_false", help="do not open the page in a browser")
    add_parameters(parser, DemoOptions)


def run(options: argparse.Namespace) -> None:
    """Run the demonstration, write its page, print its tables and open the page."""
    out = options.out
    check_writable(out)
    if out.exists() and not out.is_file():
        raise OptionError(f"--out is {out}; give the name of a file, beside which photographs fit.")
    chosen = DemoOptions(**given(options, DemoOptions))
    photographs = sort_photographs(out.with_name(f"{out.stem}-photographs"), progress_bar)
    omniglot = measure_omniglot(chosen, progress_bar)
    write_text(out, demo_page(omniglot, photographs, out))
    print_table(paper_row(omniglot))
    print_table(ablation_table(omniglot))
    if photographs.evaluation is not None:
        print("photographs:", ", ".join(photographs.evaluation.summary()))
    print(out)
    if options.open:
        open_page(out)
