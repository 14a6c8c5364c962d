"""Published numbers beside measured ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from protorect.paper.names import labels, shared_names
from protorect.paper.published import SHOTS, Key, PublishedTable, Row, Value, published
from protorect.paper.record import Measured
from protorect.report.table import Table

Found = Mapping[tuple[Key, int], Measured]

# What is measured for a published system: itself, and the other reading of eq. (6).
READINGS = {
    "bd-cspn": ("bd-cspn", "bd-cspn-classes"),
    "bd-i": ("bd-i", "bd-i:weighting=classes"),
    "tft": ("tft", "tft-head"),
}
NOTHING = "–"
MARKS = ("¹", "²", "³", "⁴")


def verdict(printed: Value, measured: Value) -> str:
    """Whether a measured number agrees with the printed one: "within", "above" or "below".

    "within" is a difference no larger than the 95 % interval of the difference, as far as
    intervals are known: many printed numbers have none.
    """
    difference = measured.mean - printed.mean
    if abs(difference) <= math.hypot(measured.ci95 or 0.0, printed.ci95 or 0.0):
        return "within"
    return "above" if difference > 0 else "below"


def comparison(table: PublishedTable, found: Found) -> Table:
    """A table of the paper, with what was measured beside each number.

    Where nothing of it was measured, the published numbers stand alone.
    """
    rows: list[tuple[Row, Key]] = []
    for row in table.rows:
        for number, system in enumerate(READINGS.get(row.key.system, (row.key.system,))):
            key = row.key._replace(system=system)
            if number == 0 or any((key, shot) in found for shot in SHOTS):
                rows.append((row, key))
    shots = [shot for shot in SHOTS if any(shot in row.values for row in table.rows)]
    columns = 3 if any((key, shot) in found for _, key in rows for shot in shots) else 1
    header = ["system"]
    for shot in shots:
        header += [f"{shot}-shot published", "measured", "difference"][:columns]
    marks = dict(zip(dict.fromkeys(row.note for row, _ in rows if row.note), MARKS, strict=False))
    cells = []
    for name, (row, key) in zip(labels([key for _, key in rows]), rows, strict=True):
        named = f"{name} ({row.setting})" if row.setting else name
        cells.append([named + marks.get(row.note, "")])
        for shot in shots:
            cells[-1] += _cells(row, key, shot, found)[:columns]
    remarks = [f"{mark} {note[0].upper()}{note[1:]}." for note, mark in marks.items()]
    told = [f"Table {table.number}. {table.title}.", table.note, *remarks]
    return Table(" ".join(filter(None, told)), header, cells)


def _cells(row: Row, key: Key, shot: int, found: Found) -> list[str]:
    printed, measured = row.values.get(shot), found.get((key, shot))
    shown = [NOTHING if printed is None else value_text(printed)]
    if measured is None:
        return [*shown, NOTHING, ""]
    if printed is None:
        return [*shown, measured_text(measured), ""]
    difference = measured.value - printed.mean
    words = f"{signed(difference)} {verdict(printed, measured.estimate)}"
    return [*shown, measured_text(measured), words]


def further(
    measured: Sequence[Measured], tables: Sequence[PublishedTable], caption: str
) -> Table | None:
    """What was measured and is not in these tables, with the gain over CSPN.

    The caption is followed by the data set and the backbone where there is only one.
    """
    printed = {row.key for table in tables for row in table.rows}
    found = {(one.key, one.shot): one for one in measured}
    keys = [key for key in dict.fromkeys(one.key for one in measured) if _base(key) not in printed]
    if not keys:
        return None
    rows = []
    for key, name in zip(keys, labels(keys), strict=True):
        row = [name]
        for shot in SHOTS:
            one, plain = found[key, shot], found.get((key._replace(system="cspn"), shot))
            row += [measured_text(one), _gain(one, plain)]
        rows.append(row)
    header = ["system"]
    for shot in SHOTS:
        header += [f"{shot}-shot measured", "minus CSPN"]
    return Table(f"{', '.join([caption, *shared_names(keys)])}.", header, rows)


def _gain(one: Measured, plain: Measured | None) -> str:
    """Over CSPN, unless it was measured on other episodes, where a difference says little."""
    if plain is None or plain == one or plain.episodes != one.episodes:
        return ""
    return signed(one.value - plain.value)


def verdicts(found: Found, systems: Iterable[str]) -> Counter[str]:
    """How often each verdict is given, over the distinct printed numbers of these systems."""
    counts: Counter[str] = Counter()
    for (key, shot), printed in {(key, shot): v for key, shot, v in published().values()}.items():
        for system in systems:
            ours = key._replace(system=system)
            measured = found.get((ours, shot))
            if key == _base(ours) and measured is not None:
                counts[verdict(printed, measured.estimate)] += 1
    return counts


def _base(key: Key) -> Key:
    """The published key that a measured one is another reading of, or the key itself."""
    base = next((name for name, both in READINGS.items() if key.system in both), key.system)
    return key._replace(system=base)


def value_text(value: Value) -> str:
    """Such as "70.31 ± 0.93"."""
    return f"{value.mean:.2f}" + ("" if value.ci95 is None else f" ± {value.ci95:.2f}")


def signed(difference: float) -> str:
    """Such as "+0.14"; what rounds to nothing has no minus sign."""
    return f"{difference:+.2f}".replace("-0.00", "+0.00")


def measured_text(one: Measured) -> str:
    """Such as "99.71 ± 0.07, Z = 10"."""
    return value_text(one.estimate) + ("" if one.z is None else f", Z = {one.z}")
