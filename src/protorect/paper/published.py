"""What the paper printed, read from `published.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

SHOTS = (1, 5)
_COLUMNS = {1: "one", 5: "five"}
_DROPS = {1: "one_drop", 5: "five_drop"}


class Value(NamedTuple):
    """A number in percent, and the half-width of its 95 % interval if there is one."""

    mean: float
    ci95: float | None = None


class Key(NamedTuple):
    """What a number is of; a published and a measured number of the same key can be compared.

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
    """A row of a table: one system, at 1-shot and 5-shot.

    Parameters
    ----------
    key
        What it is of.
    values
        By shot; a shot that is not printed is left out.
    setting, cite, note
        Of a compared system: "inductive" and so on, the key of its citation, a remark.
    rank
        The printed rank of the 5-shot value.
    drops
        By shot, the printed loss against no distractors.
    """

    key: Key
    values: Mapping[int, Value]
    setting: str = ""
    cite: str = ""
    note: str = ""
    rank: int | None = None
    drops: Mapping[int, float] | None = None


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper, by its number."""

    number: int
    title: str
    rows: tuple[Row, ...]
    note: str = ""
    average_rank: float | None = None


@dataclass(frozen=True)
class Published:
    """All tables by number, the citations, and the leaderboard the paper ranks itself in.

    `leaderboard` has, for each system, its accuracy on each source of Meta-Dataset.
    """

    tables: Mapping[int, PublishedTable]
    citations: Mapping[str, str]
    leaderboard: Mapping[str, Mapping[str, float]]

    def values(self) -> Iterator[tuple[Key, int, Value]]:
        """Every printed number with its key and shot, table by table."""
        for table in self.tables.values():
            for row in table.rows:
                for shot, value in row.values.items():
                    yield row.key, shot, value


@cache
def published() -> Published:
    """What the paper printed."""
    held = tomllib.loads(files("protorect.paper").joinpath("published.toml").read_text("utf-8"))
    board = held["leaderboard"]
    return Published(
        tables={table["number"]: _table(table) for table in held["table"]},
        citations=held["citations"],
        leaderboard={
            system: dict(zip(board["columns"], accuracies, strict=True))
            for system, accuracies in board["systems"].items()
        },
    )


def _table(held: dict[str, Any]) -> PublishedTable:
    shared = {name: held[name] for name in Key._fields if name in held}
    return PublishedTable(
        held["number"],
        held["title"],
        tuple(_row(shared | row) for row in held["rows"]),
        held.get("note", ""),
        held.get("average_rank"),
    )


def _row(held: dict[str, Any]) -> Row:
    fields = {name: held[name] for name in Key._fields if name in held}
    return Row(
        Key(**{"backbone": None} | fields),
        {shot: Value(*held[name]) for shot, name in _COLUMNS.items() if name in held},
        held.get("setting", ""),
        held.get("cite", ""),
        held.get("note", ""),
        held.get("rank"),
        {shot: held[name] for shot, name in _DROPS.items() if name in held} or None,
    )
