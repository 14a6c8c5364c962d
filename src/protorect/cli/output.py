"""Tables and lists for the terminal, and checks of output files."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from protorect._utils.files import check_writable
from protorect._utils.text import as_message
from protorect.cli.terminal import drawable
from protorect.errors import OptionError
from protorect.report.table import Table, terminal_table

WIDE = 400  # columns where the output is not a terminal, so that no name is cut


def print_table(table: Table) -> None:
    """Print a table; names are printed verbatim, not as markup."""
    width = None if sys.stdout.isatty() else WIDE
    console = Console(
        file=drawable(sys.stdout), width=width, markup=False, emoji=False, highlight=False
    )
    console.print(terminal_table(table, console))


def print_list(title: str, lines: Sequence[str], most: int | None = None, rest: str = "") -> None:
    """Print lines on standard error, `most` of them; `rest` says where the others are."""
    if not lines:
        return
    print(f"{len(lines)} {title}:", file=sys.stderr)
    for line in lines[:most]:
        print(f"  {as_message(line)}", file=sys.stderr)
    if most is not None and len(lines) > most:
        print(f"  and {len(lines) - most} more, {rest}", file=sys.stderr)


def counted(number: int, one: str, several: str) -> str:
    """A number and its noun, as in "1 class" and "2 classes"."""
    return f"{number} {one if number == 1 else several}"


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Raise if an output cannot be written, or would replace an input or another output."""
    taken = {path.resolve() for path in inputs if path is not None}
    for path in outputs:
        if path is None:
            continue
        check_writable(path)
        # A device, such as /dev/null, may be named twice.
        if path.resolve() in taken and (path.is_file() or not path.exists()):
            raise OptionError(f"{path} is named twice; give every file its own name.")
        taken.add(path.resolve())
