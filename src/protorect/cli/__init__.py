"""The command `protorect`: parse, call the library, print."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from protorect import __version__
from protorect._utils.memory import keep_freed_memory
from protorect.cli import (
    compare,
    datasets,
    demo,
    evaluate,
    extract,
    methods,
    paper,
    prepare,
    publish,
    sort,
    train,
    undo,
)
from protorect.errors import PartialError, ProtorectError

VERBS = (
    sort,
    undo,
    demo,
    datasets,
    prepare,
    train,
    extract,
    methods,
    evaluate,
    compare,
    paper,
    publish,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it worked, 1 if in part, 2 for a user's mistake."""
    _accept_any_output()
    keep_freed_memory()
    options = _parser().parse_args(arguments)
    try:
        code: int | None = options.run(options)
        sys.stdout.flush()
    except ProtorectError as error:
        return _failed(str(error), 1 if isinstance(error, PartialError) else 2)
    except MemoryError:
        return _failed("there is not enough memory for this.", 2)
    except OSError as error:  # of the output: what is read and written by us is told above
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # The reader may have gone, as in `protorect ... | head`: that needs no word.
        return 1 if isinstance(error, BrokenPipeError) else _failed(f"{error.strerror}.", 1)
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    return code or 0


def _accept_any_output() -> None:
    """A closed output is none, and a sign that it cannot show is no reason to fail."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _failed(reason: str, code: int) -> int:
    print(f"protorect: {reason}", file=sys.stderr)
    return code


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
