"""Tables of published and measured numbers."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import mean

from protorect.paper.published import SHOTS, Key, PublishedTable, Value, load_toml, published_values
from protorect.paper.record import ByKey, Measurement
from protorect.paper.texts import DATASETS, WEIGHTING_NAMES, common_names, prose, row_names
from protorect.report.page import Element
from protorect.report.table import Table

# Published system: the methods compared with it, which are our version of it and a variant.
VARIANTS = {
    "bd-cspn": ("bd-cspn", "bd-cspn-classes"),
    "bd-i": ("bd-i", "bd-i:weighting=classes"),
    "tft": ("tft", "tft-head"),
}
MISSING = "–"
NOTE_MARKS = ("¹", "²", "³", "⁴")


def agreement(printed: Value, measured: Value) -> str:
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
        agreement(printed, measured[own, shot].estimate)
        for (key, shot), printed in published_values().items()
        for own in _compared_keys(key)
        if own.system == method and (own, shot) in measured
    )


def _compared_keys(key: Key) -> list[Key]:
    """Keys of the methods to compare with a published number."""
    return [key._replace(system=name) for name in VARIANTS.get(key.system, (key.system,))]


def _any_shot(key: Key, measured: ByKey) -> bool:
    return any((key, shot) in measured for shot in SHOTS)


def is_measured(table: PublishedTable, measured: ByKey) -> bool:
    """Whether any number of a published table was measured here."""
    keys = (key for row in table.rows for key in _compared_keys(row.key))
    return any(_any_shot(key, measured) for key in keys)


def comparison(table: PublishedTable, measured: ByKey) -> Table:
    """A table of the paper, with columns for measured numbers where there are any."""
    rows = []
    for row in table.rows:
        first, *variants = _compared_keys(row.key)
        rows += [(row, first), *((row, key) for key in variants if _any_shot(key, measured))]
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
            cells[-1] += _compared(row.values.get(shot), measured.get((key, shot)))[:columns]
    remarks = [f"{mark} {note[0].upper()}{note[1:]}." for note, mark in marks.items()]
    caption = [f"Table {table.number}. {table.title}.", table.note, *remarks]
    return Table(" ".join(filter(None, caption)), header, cells)


def _compared(printed: Value | None, measured: Measurement | None) -> list[str]:
    """Cells of a published number, the measured one and their difference."""
    difference = ""
    if printed and measured:
        verdict = agreement(printed, measured.estimate)
        difference = f"{signed(measured.value - printed.mean)} {verdict}"
    return [
        value_text(printed) if printed else MISSING,
        measured_text(measured) if measured else MISSING,
        difference,
    ]


def not_in_paper(numbers: Sequence[Measurement], tables: Sequence[PublishedTable]) -> list[Table]:
    """The measured numbers that are not in these tables, with the gain over CSPN."""
    printed = {key for table in tables for row in table.rows for key in _compared_keys(row.key)}
    by_key = {(one.key, one.shot): one for one in numbers}
    keys = [key for key, shot in by_key if shot == SHOTS[0] and key not in printed]
    if not keys:
        return []
    header, rows = ["system"], [[name] for name in row_names(keys)]
    for shot in SHOTS:
        header += [f"{shot}-shot measured", "minus CSPN"]
        for row, key in zip(rows, keys, strict=True):
            one = by_key[key, shot]
            cspn = by_key.get((key._replace(system="cspn"), shot), one)
            compared = cspn != one and cspn.episodes == one.episodes
            row += [measured_text(one), signed(one.value - cspn.value) if compared else ""]
    caption = ", ".join(["Measured here, not in the paper", *common_names(keys)])
    return [Table(f"{caption}.", header, rows)]


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
    for method in VARIANTS["bd-cspn"]:
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


def value_text(value: Value) -> str:
    """Format a number, such as "70.31 ± 0.93"."""
    return f"{value.mean:.2f}" + ("" if value.ci95 is None else f" ± {value.ci95:.2f}")


def signed(difference: float) -> str:
    """Format a difference, such as "+0.14"; one that rounds to zero has no minus sign."""
    return f"{difference:+.2f}".replace("-0.00", "+0.00")


def measured_text(one: Measurement) -> str:
    """Format a measured number, such as "99.71 ± 0.07, Z = 10"."""
    return value_text(one.estimate) + ("" if one.z is None else f", Z = {one.z}")
