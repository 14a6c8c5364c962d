"""Tables of published and measured numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from protorect.core.statistics import Estimate
from protorect.paper.feature_sets import FeatureSet
from protorect.paper.names import (
    DATASETS,
    WEIGHTINGS,
    common_names,
    feature_set_name,
    row_names,
    system_name,
)
from protorect.paper.prose import prose
from protorect.paper.published import SHOTS, Key, PublishedTable, Row, Value, published
from protorect.paper.record import ByKey, Measurement
from protorect.paper.weighting import PRINTED_EPSILON
from protorect.report.page import Element
from protorect.report.results import difference_text
from protorect.report.table import Table

# The methods that are compared with a published system: itself and its variant.
VARIANTS = {
    "bd-cspn": ("bd-cspn", "bd-cspn-classes"),
    "bd-i": ("bd-i", "bd-i:weighting=classes"),
    "tft": ("tft", "tft-head"),
}
MISSING = "–"
NOTE_MARKS = ("¹", "²", "³", "⁴")


def agreement(printed: Value, measured: Value) -> str:
    """Whether a measured number agrees with the printed one: "within", "above" or "below".

    "within" is a difference no larger than its 95 % interval, as far as intervals are known: many
    printed numbers have none.
    """
    difference = measured.mean - printed.mean
    if abs(difference) <= math.hypot(measured.ci95 or 0.0, printed.ci95 or 0.0):
        return "within"
    return "above" if difference > 0 else "below"


def agreement_counts(measured: ByKey, systems: Iterable[str]) -> Counter[str]:
    """How often each agreement occurs among the distinct printed numbers of these methods."""
    return Counter(
        agreement(printed, measured[own, shot].estimate)
        for (key, shot), printed in published().distinct().items()
        for own in (key._replace(system=system) for system in systems)
        if key == _published_key(own) and (own, shot) in measured
    )


def is_measured(table: PublishedTable, measured: ByKey) -> bool:
    """Whether a number of a published table was measured."""
    return any((key, shot) in measured for row in table.rows for key, shot in _cells_of(row))


def comparison(table: PublishedTable, measured: ByKey) -> Table:
    """A table of the paper, with columns for measured numbers where there are any."""
    rows: list[tuple[Row, Key]] = []
    for row in table.rows:
        keys = list(dict.fromkeys(key for key, _ in _cells_of(row)))
        variants = [key for key in keys[1:] if any((key, shot) in measured for shot in SHOTS)]
        rows += [(row, key) for key in (keys[0], *variants)]
    shots = [shot for shot in SHOTS if any(shot in row.values for row in table.rows)]
    columns = 3 if is_measured(table, measured) else 1
    header = ["system"]
    for shot in shots:
        header += [f"{shot}-shot published", "measured", "difference"][:columns]
    notes = dict.fromkeys(row.note for row in table.rows if row.note)
    marks = dict(zip(notes, NOTE_MARKS, strict=False))
    cells = []
    for name, (row, key) in zip(row_names([key for _, key in rows]), rows, strict=True):
        setting = f" ({row.setting})" if row.setting else ""
        cells.append([f"{name}{setting}{marks.get(row.note, '')}"])
        for shot in shots:
            one = measured.get((key, shot))
            cells[-1] += _compared(row.values.get(shot), one)[:columns]
    remarks = [f"{mark} {note[0].upper()}{note[1:]}." for note, mark in marks.items()]
    caption = [f"Table {table.number}. {table.title}.", table.note, *remarks]
    return Table(" ".join(filter(None, caption)), header, cells)


def _cells_of(row: Row) -> list[tuple[Key, int]]:
    """Keys and shots of the methods to compare with a published row."""
    systems = VARIANTS.get(row.key.system, (row.key.system,))
    return [(row.key._replace(system=name), shot) for name in systems for shot in SHOTS]


def _published_key(key: Key) -> Key:
    """The published key that a measured key is compared with."""
    system = next((name for name, both in VARIANTS.items() if key.system in both), key.system)
    return key._replace(system=system)


def _compared(printed: Value | None, measured: Measurement | None) -> list[str]:
    """Cells of a published number, the measured one and their difference."""
    published_cell = MISSING if printed is None else value_text(printed)
    if measured is None:
        return [published_cell, MISSING, ""]
    if printed is None:
        return [published_cell, measured_text(measured), ""]
    difference = signed(measured.value - printed.mean)
    verdict = agreement(printed, measured.estimate)
    return [published_cell, measured_text(measured), f"{difference} {verdict}"]


def not_in_paper(numbers: Sequence[Measurement], tables: Sequence[PublishedTable]) -> list[Table]:
    """The measured numbers that are not in these tables, with the gain over CSPN."""
    printed = {row.key for table in tables for row in table.rows}
    by_key = {(one.key, one.shot): one for one in numbers}
    keys = [key for key, shot in by_key if shot == SHOTS[0] and _published_key(key) not in printed]
    if not keys:
        return []
    header, rows = ["system"], [[name] for name in row_names(keys)]
    for shot in SHOTS:
        header += [f"{shot}-shot measured", "minus CSPN"]
        for row, key in zip(rows, keys, strict=True):
            cspn = by_key.get((key._replace(system="cspn"), shot))
            row += [measured_text(by_key[key, shot]), _gain(by_key[key, shot], cspn)]
    caption = ", ".join(["Measured here, not in the paper", *common_names(keys)])
    return [Table(f"{caption}.", header, rows)]


def _gain(one: Measurement, cspn: Measurement | None) -> str:
    """Gain over CSPN, if it was measured on the same episodes."""
    if cspn is None or cspn == one or cspn.episodes != one.episodes:
        return ""
    return signed(one.value - cspn.value)


def fine_tuned_table(method: str, differences: Mapping[FeatureSet, Mapping[str, Any]]) -> Table:
    """Paired differences of a fine-tuned network to CSPN, one row per feature set."""
    rows = [
        [
            feature_set_name(features),
            str(by_shot["episodes"]),
            *(difference_text(Estimate(**by_shot[str(shot)])) for shot in SHOTS),
        ]
        for features, by_shot in differences.items()
    ]
    header = ["data set", "episodes", *(f"{shot}-shot minus CSPN" for shot in SHOTS)]
    return Table(prose("fine-tuned caption", system=system_name(method)), header, rows)


def rank(dataset: str, accuracy: float) -> int:
    """Rank of an accuracy among the seven systems of the leaderboard on one data set."""
    return 1 + sum(system[dataset] > accuracy for system in published().leaderboard.values())


def ranks(measured: ByKey) -> list[Element]:
    """The rank of the 5-shot model on every data set of Meta-Dataset, and the averages."""
    table = published().tables[14]
    rows: list[list[str]] = []
    columns: list[list[int]] = [[], [], [], []]  # printed, computed, and two that were measured
    for row in table.rows:
        dataset, cells = row.key.dataset, [DATASETS[row.key.dataset]]
        columns[0].append(row.rank or 0)
        columns[1].append(rank(dataset, row.values[5].mean))
        cells += [str(column[-1]) for column in columns[:2]]
        for column, method in zip(columns[2:], VARIANTS["bd-cspn"], strict=True):
            one = measured.get((Key(dataset, None, method), 5))
            if one is not None:
                column.append(rank(dataset, one.value))
            cells.append(MISSING if one is None else f"{column[-1]} ({one.value:.2f})")
        rows.append(cells)
    text = prose(
        "ranks",
        average_rank=table.average_rank,
        printed=mean(columns[0]),
        computed=mean(columns[1]),
        differing=", ".join(row[0] for row in rows if row[1] != row[2]),
    )
    own = [f"{mean(column):.1f}, of {len(column)}" if column else MISSING for column in columns[2:]]
    rows.append(["mean", *(f"{mean(column):.1f}" for column in columns[:2]), *own])
    header = ["data set", "printed", "from its numbers", *WEIGHTINGS.values()]
    return [text, Table(prose("ranks caption"), header, rows)]


def weights_table(study: Mapping[str, Any], features: FeatureSet) -> Table:
    """Gain over CSPN by epsilon, shot and weighting, and the weight of the support at 1-shot."""
    curves = {(k, w): study["shots"][str(k)][w] for k in SHOTS for w in WEIGHTINGS}
    header = ["ε", *(f"{k}-shot gain, {WEIGHTINGS[w]}" for k, w in curves)]
    header += [f"support's weight at 1-shot, {name}" for name in WEIGHTINGS.values()]
    rows = []
    for i, epsilon in enumerate(study["epsilon"]):
        gains = [Estimate(one["gain"][i], one["gain_ci95"][i]) for one in curves.values()]
        shares = [f"{100 * curves[1, w]['support_share'][i]:.0f} %" for w in WEIGHTINGS]
        rows.append([f"{epsilon:g}", *map(difference_text, gains), *shares])
    printed = [f"{published_gain(features, shot):+.2f}" for shot, _ in curves]
    rows.append([f"published, ε = {PRINTED_EPSILON:g}", *printed, "", ""])
    return Table(prose("weights caption", where=feature_set_name(features)), header, rows)


def published_value(features: FeatureSet, system: str, shot: int) -> float:
    """The printed 5-way accuracy of a system."""
    return published().distinct()[Key(features.dataset, features.backbone, system), shot].mean


def published_gain(features: FeatureSet, shot: int) -> float:
    """BD-CSPN minus CSPN, as the paper prints them."""
    rectified, basic = (published_value(features, name, shot) for name in ("bd-cspn", "cspn"))
    return rectified - basic


def value_text(value: Value) -> str:
    """Format a number, such as "70.31 ± 0.93"."""
    return f"{value.mean:.2f}" + ("" if value.ci95 is None else f" ± {value.ci95:.2f}")


def signed(difference: float) -> str:
    """Format a difference, such as "+0.14"; one that rounds to zero has no minus sign."""
    return f"{difference:+.2f}".replace("-0.00", "+0.00")


def measured_text(one: Measurement) -> str:
    """Format a measured number, such as "99.71 ± 0.07, Z = 10"."""
    return value_text(one.estimate) + ("" if one.z is None else f", Z = {one.z}")
