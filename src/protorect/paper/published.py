"""The numbers that the paper prints, from `published.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

SHOTS = (1, 5)
_COLUMNS = {1: "one", 5: "five"}


class Value(NamedTuple):
    """A number in percent, and the half-width of its 95 % interval if there is one."""

    mean: float
    ci95: float | None = None


class Key(NamedTuple):
    """Identifies a number; a published and a measured number with the same key are compared.

    `backbone` is None where the paper does not name one. `quantity` is "accuracy" or "map".
    """

    dataset: str
    backbone: str | None
    system: str
    way: int = 5
    distractors: int = 0
    quantity: str = "accuracy"


@dataclass(frozen=True)
class Row:
    """One system of a table: its values by shot, as far as they are printed.

    Compared systems have a `setting` such as "inductive", a citation and sometimes a note. `rank`
    is the printed rank of the 5-shot value.
    """

    key: Key
    values: Mapping[int, Value]
    setting: str = ""
    cite: str = ""
    note: str = ""
    rank: int | None = None


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper."""

    number: int
    title: str
    rows: tuple[Row, ...]
    note: str = ""
    average_rank: float | None = None


@dataclass(frozen=True)
class Published:
    """All tables by number, citations by key, and the leaderboard the paper ranks itself in.

    `leaderboard` has the accuracy of each system on each data set of Meta-Dataset.
    """

    tables: Mapping[int, PublishedTable]
    citations: Mapping[str, str]
    leaderboard: Mapping[str, Mapping[str, float]]

    def values(self) -> Iterator[tuple[Key, int, Value]]:
        """Key, shot and value of every printed number, table by table."""
        for table in self.tables.values():
            for row in table.rows:
                for shot, value in row.values.items():
                    yield row.key, shot, value

    def distinct(self) -> dict[tuple[Key, int], Value]:
        """Every printed number once, by key and shot."""
        return {(key, shot): value for key, shot, value in self.values()}


@cache
def load_toml(name: str) -> dict[str, Any]:
    """Read a TOML file of this package."""
    return tomllib.loads(files("protorect.paper").joinpath(name).read_text("utf-8"))


@cache
def published() -> Published:
    """Load the paper's numbers."""
    data = load_toml("published.toml")
    board = data["leaderboard"]
    return Published(
        tables={table["number"]: _table(**table) for table in data["table"]},
        citations=data["citations"],
        leaderboard={
            system: dict(zip(board["columns"], accuracies, strict=True))
            for system, accuracies in board["systems"].items()
        },
    )


def _table(
    number: int,
    title: str,
    rows: list[dict[str, Any]],
    note: str = "",
    average_rank: float | None = None,
    **shared: Any,
) -> PublishedTable:
    """A table whose rows all have the `shared` fields of a key."""
    return PublishedTable(
        number, title, tuple(_row(shared | row) for row in rows), note, average_rank
    )


def _row(cells: dict[str, Any]) -> Row:
    key = {name: cells[name] for name in Key._fields if name in cells}
    optional = ("setting", "cite", "note", "rank")
    return Row(
        Key(**{"backbone": None} | key),
        {shot: Value(*cells[name]) for shot, name in _COLUMNS.items() if name in cells},
        **{name: cells[name] for name in optional if name in cells},
    )
