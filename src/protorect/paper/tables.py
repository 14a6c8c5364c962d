"""Tables of published and measured numbers."""

import math
from collections import Counter
from statistics import mean
from typing import NamedTuple

from protorect.paper import feature_sets
from protorect.paper.published import (
    SHOTS,
    Key,
    PublishedTable,
    Row,
    Value,
    load_toml,
    published_values,
)
from protorect.paper.record import ByKey, Measurement
from protorect.paper.texts import BACKBONES, DATASETS, SYSTEMS, WEIGHTING_NAMES, prose, row_names
from protorect.report.page import Element
from protorect.report.table import Table

# Published system: the methods compared with it, our version of it and variants. Z is the paper's
# 8, or chosen on validation classes.
VARIANTS = {
    "bd-cspn": ("bd-cspn:z=8", "bd-cspn", "bd-cspn-classes:z=8", "bd-cspn-classes"),
    "bd-i": ("bd-i:z=8", "bd-i", "bd-i:z=8,weighting=classes", "bd-i:weighting=classes"),
    "tft": ("tft", "tft-head"),
}
# Where the paper's widest network was not measured, the first of these that was is shown instead.
WIDE = "wrn28-10"
OTHER_NETWORKS = ("resnet12", "conv256", "conv128", "conv64")
MISSING = "–"
NOTE_MARKS = ("¹", "²", "³", "⁴")


class _Compared(NamedTuple):
    """A published row and the key of what was measured for it."""

    row: Row
    key: Key

    @property
    def other_network(self) -> bool:
        return self.key.backbone != self.row.key.backbone


def agreement(printed: Value, measured: Value | Measurement) -> str:
    """Whether a measured number agrees with the printed one: "within", "above" or "below".

    "within" means that the 95 % interval of their difference contains zero. A number that was
    printed without an interval counts as exact.
    """
    difference = measured.mean - printed.mean
    if abs(difference) <= math.hypot(measured.ci95 or 0.0, printed.ci95 or 0.0):
        return "within"
    return "above" if difference > 0 else "below"


def agreement_counts(measured: ByKey, method: str) -> Counter[str]:
    """How many of a method's numbers are "within", "above" and "below" the printed ones."""
    return Counter(
        agreement(printed, measured[own, shot])
        for (key, shot), printed in published_values().items()
        for own in variants(key)
        if own.system == method and (own, shot) in measured
    )


def variants(key: Key) -> list[Key]:
    """Keys of the methods to compare with a published number."""
    return [key._replace(system=name) for name in VARIANTS.get(key.system, (key.system,))]


def measured_keys(table: PublishedTable, key: Key, measured: ByKey) -> list[Key]:
    """Keys of what was measured for a number of a table, if need be with another network.

    Another network takes the place of WRN-28-10 where the table has only that one.
    """
    wide_only = {row.key.backbone for row in table.rows if row.key.system in SYSTEMS} == {WIDE}
    for backbone in (key.backbone, *(OTHER_NETWORKS if wide_only and key.backbone == WIDE else ())):
        compared = variants(key._replace(backbone=backbone))
        found = [one for one in compared if any((one, shot) in measured for shot in SHOTS)]
        if found:
            return found
    return []


def has_chosen_z(key: Key, measured: ByKey) -> bool:
    """Whether Z was chosen on validation classes for a measured number."""
    found = [measured[key, shot] for shot in SHOTS if (key, shot) in measured]
    return any(one.z is not None for one in found)


def is_measured(table: PublishedTable, measured: ByKey) -> bool:
    """Whether any number of a published table was measured here."""
    return any(measured_keys(table, row.key, measured) for row in table.rows)


def comparison(table: PublishedTable, measured: ByKey) -> Table:
    """A table of the paper, with columns for measured numbers where there are any."""
    rows = [
        _Compared(row, key)
        for row in table.rows
        for key in measured_keys(table, row.key, measured) or [row.key]
    ]
    shots = [shot for shot in SHOTS if any(shot in row.values for row in table.rows)]
    columns = 3 if is_measured(table, measured) else 1
    header = ["system"]
    for shot in shots:
        header += [f"{shot}-shot published", "measured", "difference"][:columns]
    notes = dict.fromkeys(row.note for row in table.rows if row.note)
    marks = dict(zip(notes, NOTE_MARKS, strict=False))
    keys = [one.key._replace(backbone=one.row.key.backbone) for one in rows]
    chosen = [key for key, one in zip(keys, rows, strict=True) if has_chosen_z(one.key, measured)]
    names = row_names(keys, chosen)
    cells = []
    for name, one in zip(names, rows, strict=True):
        here = f"here {BACKBONES[one.key.backbone or '']}" if one.other_network else ""
        setting = ", ".join(filter(None, (one.row.setting, here)))
        cells.append([f"{name}{f' ({setting})' if setting else ''}{marks.get(one.row.note, '')}"])
        for shot in shots:
            cells[-1] += _compared(one, shot, measured)[:columns]
    remarks = [f"{mark} {note[0].upper()}{note[1:]}." for note, mark in marks.items()]
    if any(one.other_network for one in rows):
        remarks.append(prose("other network"))
    if all("missing" in feature_sets.DATASETS[row.key.dataset] for row in table.rows):
        remarks.append(prose("no pictures"))
    caption = [f"Table {table.number}. {table.title}.", table.note, *remarks]
    return Table(" ".join(filter(None, caption)), header, cells)


def _compared(one: _Compared, shot: int, measured: ByKey) -> list[str]:
    """Cells of a published number, the measured one and their difference."""
    printed, number, difference = one.row.values.get(shot), measured.get((one.key, shot)), ""
    if printed and number and one.other_network:
        difference = _change(one, shot, measured)
    elif printed and number:
        difference = f"{signed(number.value - printed.mean)} {agreement(printed, number)}"
    return [value_text(printed), measured_text(number), difference]


def _change(one: _Compared, shot: int, measured: ByKey) -> str:
    """How much a number differs from CSPN, or from N' = 0, here and in the paper."""
    changes = []
    for key, values in ((one.key, measured), (one.row.key, published_values())):
        plain = key._replace(distractors=0) if key.distractors else key._replace(system="cspn")
        if key == plain or (plain, shot) not in values:
            return ""
        changes.append(signed(values[key, shot].mean - values[plain, shot].mean))
    return f"{changes[0]} (published {changes[1]})"


def rank(dataset: str, accuracy: float) -> int:
    """Rank of an accuracy on one data set among the seven systems of Meta-Dataset's leaderboard."""
    board = load_toml("published.toml")["leaderboard"]
    column = board["columns"].index(dataset)
    return 1 + sum(int(system[column] > accuracy) for system in board["systems"].values())


def ranks(table: PublishedTable, measured: ByKey) -> list[Element]:
    """The rank of the 5-shot model on every data set of Meta-Dataset, and the averages."""
    printed = [row.rank or 0 for row in table.rows]
    computed = [rank(row.key.dataset, row.values[5].mean) for row in table.rows]
    names = [DATASETS[row.key.dataset] for row in table.rows]
    rows = [list(map(str, cells)) for cells in zip(names, printed, computed, strict=True)]
    means = ["mean", f"{mean(printed):.1f}", f"{mean(computed):.1f}"]
    for method in ("bd-cspn", "bd-cspn-classes"):
        own = []
        for cells, row in zip(rows, table.rows, strict=True):
            one = measured.get((row.key._replace(system=method), 5))
            if one is None:
                cells.append(MISSING)
            else:
                own.append(rank(row.key.dataset, one.value))
                cells.append(f"{own[-1]} ({one.value:.2f})")
        means.append(f"{mean(own):.1f}, of {len(own)}" if own else MISSING)
    text = prose(
        "ranks",
        average_rank=table.average_rank,
        printed=mean(printed),
        computed=mean(computed),
        differing=", ".join(row[0] for row in rows if row[1] != row[2]),
    )
    header = ["data set", "printed", "from its numbers", *WEIGHTING_NAMES.values()]
    return [text, Table(prose("ranks caption"), header, [*rows, means])]


def value_text(value: Value | Measurement | None) -> str:
    """Format a number, such as "70.31 ± 0.93", or that there is none."""
    if value is None:
        return MISSING
    return f"{value.mean:.2f}" + ("" if value.ci95 is None else f" ± {value.ci95:.2f}")


def signed(difference: float) -> str:
    """Format a difference, such as "+0.14"; one that rounds to zero has no minus sign."""
    return f"{difference:+.2f}".replace("-0.00", "+0.00")


def measured_text(one: Measurement | None) -> str:
    """Format a measured number, such as "99.71 ± 0.07, Z = 10", or that there is none."""
    return value_text(one) + ("" if one is None or one.z is None else f", Z = {one.z}")
