"""The command `protorect`: parse, call the library, print."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from protorect import __version__
from protorect.cli import demo, evaluate
from protorect.errors import ProtorectError

VERBS = (demo, evaluate)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it worked, 2 for a user's mistake."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except ProtorectError as error:
        print(f"protorect: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has gone, as in `protorect ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("protorect: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="protorect",
        description="Few-shot image classification by prototype rectification (BD-CSPN).",
    )
    parser.add_argument("--version", action="version", version=f"protorect {__version__}")
    verbs = parser.add_subparsers(metavar="COMMAND", required=True)
    for verb in VERBS:
        verb.add_to(verbs)
    return parser
