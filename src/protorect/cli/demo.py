"""Demonstrate few-shot learning on handwritten digits, with tables and an HTML page.

Train a small network on the digits 0 to 4 of scikit-learn, which need no download, compare the
methods on the digits 5 to 9, and write the results as one HTML page with tables and figures.
Takes about a minute on two processors.
"""

import argparse
from pathlib import Path

from protorect._utils.files import check_writable, write_text
from protorect.cli.arguments import add_parameters, given
from protorect.cli.output import print_table
from protorect.cli.progress import progress_bar, training_progress
from protorect.demo.digits import BASE, NOVEL, QUERY, WAY, DemoOptions, Plan, learn, measure
from protorect.demo.page import demo_page, pixels_table, span
from protorect.report.results import results_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("--out", type=Path, default="protorect-demo.html", metavar="F.html", help="(%(default)s)")
    add_parameters(parser, DemoOptions)


def run(options: argparse.Namespace) -> None:
    """Run the demonstration, write its page and print its tables."""
    check_writable(options.out)
    chosen = DemoOptions(**given(options, DemoOptions))
    plan = Plan.of(chosen.episodes, chosen.epochs, chosen.seed)
    with training_progress(chosen.epochs) as (step, epoch):
        learned = learn(plan, step, epoch)
    with progress_bar("episodes") as progress:
        result = measure(plan, learned, progress)
    write_text(options.out, demo_page(result))
    title = (
        f"trained on the digits {span(BASE)}, tested on {span(NOVEL)}: {WAY}-way, "
        f"{QUERY} queries, {chosen.episodes} episodes, accuracy in %"
    )
    print_table(results_table(list(result.by_network.values()), title))
    print_table(pixels_table(result, "the same episodes on pixels, and the gain of the network"))
    print(options.out)
