"""The numbers that the paper prints, from `published.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

SHOTS = (1, 5)
_COLUMNS = {1: "one", 5: "five"}


class Value(NamedTuple):
    """A number in percent, and the half-width of its 95 % interval if it is known."""

    mean: float
    ci95: float | None = None


class Key(NamedTuple):
    """Identifies a number; a published and a measured number with the same key are compared."""

    dataset: str
    backbone: str | None  # None where the paper does not name one
    system: str
    way: int = 5
    distractors: int = 0
    quantity: str = "accuracy"  # or "map"


class Row(NamedTuple):
    """One system of a table."""

    key: Key
    values: Mapping[int, Value]  # by shot, as far as they are printed
    setting: str = ""  # of a compared system, such as "inductive"
    cite: str = ""
    note: str = ""
    rank: int | None = None  # as printed, of the 5-shot value


class PublishedTable(NamedTuple):
    """A table of the paper."""

    number: int
    title: str
    rows: list[Row]
    note: str = ""
    average_rank: float | None = None


@cache
def load_toml(name: str) -> dict[str, Any]:
    """Read a TOML file of this package."""
    return tomllib.loads(files("protorect.paper").joinpath(name).read_text("utf-8"))


@cache
def published_tables() -> dict[int, PublishedTable]:
    """All tables of the paper, by number."""
    return {table["number"]: _table(**table) for table in load_toml("published.toml")["table"]}


@cache
def published_values() -> dict[tuple[Key, int], Value]:
    """Every printed number once, by key and shot."""
    rows = (row for table in published_tables().values() for row in table.rows)
    return {(row.key, shot): value for row in rows for shot, value in row.values.items()}


def _table(rows: list[dict[str, Any]], **fields: Any) -> PublishedTable:
    """A table; those fields that are not its own are shared by its rows."""
    own = {name: fields.pop(name) for name in PublishedTable._fields if name in fields}
    return PublishedTable(rows=[_row({"backbone": None} | fields | row) for row in rows], **own)


def _row(fields: dict[str, Any]) -> Row:
    key = Key(**{name: fields[name] for name in Key._fields if name in fields})
    values = {shot: Value(*fields[name]) for shot, name in _COLUMNS.items() if name in fields}
    return Row(key, values, **{name: fields[name] for name in Row._fields[2:] if name in fields})
