"""List the methods that `protorect evaluate --method` takes, or describe some in full."""

import argparse

from protorect.methods import METHODS, PICTURE_METHODS, chosen_with_pictures
from protorect.methods.description import method_text, methods_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("name", nargs="*", metavar="NAME", help="describe these in full")
    parser.add_argument("--markdown", action="store_true", help="everything, as docs/methods.md")


def run(options: argparse.Namespace) -> None:
    """Print one line per method, or a page."""
    if options.markdown:
        print(methods_page(), end="")
    elif options.name:
        print("\n\n".join(method_text(method) for method in chosen_with_pictures(options.name)))
    else:
        width = max(map(len, METHODS))
        for method in (METHODS | PICTURE_METHODS).values():
            print(f"{method.name:{width}}  {method.family:12}  {method.summary}")
