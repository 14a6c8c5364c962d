"""`protorect methods`: the methods there are, where they come from and what they can be told."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(verbs: Any) -> None:
    """Add this verb to the parser."""
    parser = verbs.add_parser(
        "methods",
        help="list the methods, or tell all about some: source, assumptions, options",
        description="List the methods that `protorect evaluate --method` takes.",
    )
    parser.add_argument("name", nargs="*", metavar="NAME", help="tell all about these")
    parser.add_argument("--markdown", action="store_true", help="everything, as docs/methods.md")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print a line a method, or a page."""
    from protorect.methods import METHODS, PICTURE_METHODS, chosen_with_pictures
    from protorect.methods.description import method_text, methods_page

    if options.markdown:
        print(methods_page(), end="")
    elif options.name:
        print("\n\n".join(method_text(one) for one in chosen_with_pictures(options.name)))
    else:
        width = max(map(len, METHODS))
        for one in (METHODS | PICTURE_METHODS).values():
            print(f"{one.name:{width}}  {one.family:12}  {one.summary}")
