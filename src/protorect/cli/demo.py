"""`protorect demo`: few-shot learning on handwritten digits, as a table and a page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Compare the methods on scikit-learn's handwritten digits, which need no download, and write what
was found as one HTML page with tables and figures. Takes some seconds.
"""


def add_to(verbs: Any) -> None:
    """Add this verb to the parser."""
    parser = verbs.add_parser(
        "demo",
        help="see few-shot learning on handwritten digits; writes a page",
        description=DESCRIPTION,
    )
    add = parser.add_argument
    add(
        "--out",
        type=Path,
        default=Path("protorect-demo.html"),
        metavar="PAGE.html",
        help="where the page goes (%(default)s)",
    )
    add("--episodes", type=int, default=600, help="how many tasks (%(default)s)")
    add("--seed", type=int, default=0, help="the same seed draws the same tasks (%(default)s)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the demonstration, print its table and write its page."""
    from protorect.files import check_writable, write_text

    check_writable(options.out)

    from protorect.cli.output import show
    from protorect.cli.progress import progress_bar
    from protorect.demo import demo_page, run_demo
    from protorect.demo.measure import QUERY, WAY
    from protorect.report.tables import results_table

    with progress_bar("episodes") as progress:
        result = run_demo(options.episodes, options.seed, progress)
    write_text(options.out, demo_page(result))
    title = f"digits: {WAY}-way, {QUERY} queries, {result.episodes} episodes, accuracy in %"
    show(results_table(result.ablation, title))
    print(options.out)
