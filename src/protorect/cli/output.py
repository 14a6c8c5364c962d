"""Tables on standard output, and files that do not get in each other's way."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from protorect._utils.files import check_writable
from protorect.errors import OptionError
from protorect.report.table import Table, terminal_table

WIDE = 400  # columns where nobody looks at a screen: no name is cut


def show(table: Table) -> None:
    """Print a table; names are taken as they are, not as markup."""
    width = None if sys.stdout.isatty() else WIDE
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    console.print(terminal_table(table))


def listed(what: str, lines: Sequence[str], most: int | None = None, rest: str = "") -> None:
    """Name on standard error what went wrong, at most so many; `rest` says where the others are."""
    if not lines:
        return
    print(f"{len(lines)} {what}:", file=sys.stderr)
    for line in lines[:most]:
        print(f"  {line}", file=sys.stderr)
    if most is not None and len(lines) > most:
        print(f"  and {len(lines) - most} more, {rest}", file=sys.stderr)


def check_outputs(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Raise if an output cannot be written, or would replace an input or another output."""
    taken = {path.resolve() for path in inputs if path is not None}
    for path in outputs:
        if path is None:
            continue
        check_writable(path)
        if path.resolve() in taken and path.is_file() | (not path.exists()):
            raise OptionError(f"{path} is named twice; give every file a name of its own.")
        taken.add(path.resolve())
