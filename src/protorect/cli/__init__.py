"""The command `protorect`: parse, call the library, print."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from protorect import __version__
from protorect._utils.memory import keep_freed_memory
from protorect._utils.text import as_message, printable
from protorect.cli.terminal import shown_output
from protorect.errors import PartialError, ProtorectError

# Each command is a module of this package: its docstring is the help, and it has add_arguments and
# run. It is imported when the command is chosen, so that `protorect --help` does not import torch.
COMMANDS = {
    "sort": "sort pictures into class folders, from a few examples",
    "label": "label pictures on a page where every label relabels the rest",
    "undo": "undo what `protorect sort` did",
    "export": "write the labels of a project or a sorted folder for other programs",
    "demo": "see the paper's effect, and a folder sorted; writes a page",
    "networks": "list the networks that can embed pictures: terms, accuracy, speed",
    "datasets": "list known data sets: where to get them, licenses, folders",
    "prepare": "index and pack a data set, once",
    "train": "train a backbone on the base classes of a data set",
    "extract": "write the features of pictures by a trained backbone",
    "methods": "list the methods, or describe some: source, assumptions, options",
    "evaluate": "compare methods on the same episodes of a feature file",
    "compare": "compare all methods on several feature sets in several settings",
    "paper": "measure the paper's tables and figures again",
    "publish": "write the weights of a run with a model card, for others to use",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it worked, 1 if in part, 2 for a user's mistake."""
    keep_freed_memory()
    with shown_output():
        return _main(sys.argv[1:] if arguments is None else arguments)


def _main(arguments: Sequence[str]) -> int:
    try:
        options = _parse(arguments)
        code: int | None = options.run(options)
        sys.stdout.flush()
    except ProtorectError as error:
        return _failed(str(error), 1 if isinstance(error, PartialError) else 2)
    except MemoryError:
        return _failed("there is not enough memory for this.", 2)
    except OSError as error:
        if error.filename is not None:  # most have been named before, with what to do
            return _failed(f"cannot use {printable(error.filename)}: {error.strerror}.", 2)
        # Standard output has no name.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # A reader that has gone, as in `protorect ... | head`, needs no message.
        return 1 if isinstance(error, BrokenPipeError) else _failed(f"{error.strerror}.", 1)
    except KeyboardInterrupt:
        return _failed("interrupted", 130)
    return code or 0


def _failed(reason: str, code: int) -> int:
    print(f"protorect: {as_message(reason)}", file=sys.stderr)
    return code


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="protorect",
        description="Few-shot image classification by prototype rectification (BD-CSPN).",
    )
    parser.add_argument("--version", action="version", version=f"protorect {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name == chosen:
            module = import_module(f"protorect.cli.{name.replace('-', '_')}")
            command.description = module.__doc__
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser.parse_args(arguments)
