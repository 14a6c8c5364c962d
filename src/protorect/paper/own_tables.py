"""Tables of what was measured beyond the paper's: other settings, networks, versions and runs."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev

from protorect.paper.published import SHOTS, Key, PublishedTable, Value, published_values
from protorect.paper.record import ByKey, Measurement
from protorect.paper.tables import (
    MISSING,
    OTHER_NETWORKS,
    has_chosen_z,
    measured_keys,
    measured_text,
    signed,
    value_text,
    variants,
)
from protorect.paper.texts import DATASETS, RUNS, common_names, prose, row_names
from protorect.report.table import Table


def not_in_paper(
    numbers: Sequence[Measurement], tables: Sequence[PublishedTable], measured: ByKey
) -> list[Table]:
    """The measured numbers that are not shown in these tables, with the gain over CSPN."""
    rows = ((table, row.key) for table in tables for row in table.rows)
    shown = {own for table, key in rows for own in measured_keys(table, key, measured)}
    by_key = {(one.key, one.shot): one for one in numbers if not one.run}
    keys = [key for key, shot in by_key if shot == SHOTS[0] and key not in shown]
    if not keys:
        return []
    header, cells = ["system"], [[name] for name in _names(keys, by_key)]
    for shot in SHOTS:
        header += [f"{shot}-shot measured", "minus CSPN"]
        for row, key in zip(cells, keys, strict=True):
            one = by_key[key, shot]
            cspn = by_key.get((key._replace(system="cspn"), shot), one)
            compared = cspn != one and cspn.episodes == one.episodes
            row += [measured_text(one), signed(one.value - cspn.value) if compared else ""]
    caption = ", ".join(["Measured here, not in the paper", *common_names(keys)])
    return [Table(f"{caption}.", header, cells)]


def same_network(dataset: str, measured: ByKey) -> list[Table]:
    """Published and measured systems with the same network, by 1-shot accuracy."""
    tables = []
    for backbone in reversed(OTHER_NETWORKS):
        network = Key(dataset, backbone, "")
        own = _systems(network, measured, "measured here")
        rows = [*own, *_systems(network, published_values(), "published")]
        if own:
            rows.sort(key=lambda row: (row[2] == MISSING, row[2]))
            header = ["system", "", *(f"{shot}-shot" for shot in SHOTS)]
            caption = prose("same network", names=", ".join(common_names([network])))
            tables.append(Table(caption, header, rows))
    return tables


def _systems(
    network: Key, values: Mapping[tuple[Key, int], Value | Measurement], source: str
) -> list[list[str]]:
    """Cells of every system of a network: name, source, accuracies."""
    keys = dict.fromkeys(key for key, _ in values if key._replace(system="") == network)
    rows = []
    for key in keys:
        found = [values.get((key, shot)) for shot in SHOTS]
        chosen = [key] if any(getattr(one, "z", None) for one in found) else []
        rows.append([*row_names([key], chosen), source, *map(value_text, found)])
    return rows


def side_by_side(versions: Sequence[str], measured: ByKey) -> list[Table]:
    """The paper's numbers of a data set, and those measured on each version of it."""
    rows = [
        (own, [own._replace(dataset=name) for name in versions], printed)
        for printed in dict.fromkeys(key for key, _ in published_values())
        if printed.dataset == versions[0]
        for own in variants(printed)
    ]
    rows = [row for row in rows if any((key, SHOTS[0]) in measured for key in row[1])]
    if not rows:
        return []
    chosen = [own for own, keys, _ in rows if any(has_chosen_z(key, measured) for key in keys)]
    cells = [[name] for name in row_names([own for own, _, _ in rows], chosen)]
    header = ["system"]
    for shot in SHOTS:
        header += [f"{shot}-shot published", *(DATASETS[name] for name in versions)]
        for row, (_, keys, printed) in zip(cells, rows, strict=True):
            row.append(value_text(published_values()[printed, shot]))
            row += [measured_text(measured.get((key, shot))) for key in keys]
    return [Table(prose("side by side"), header, cells)]


def further_runs(numbers: Sequence[Measurement]) -> list[Table]:
    """Other seeds and recipes of a network beside its main run, one table per shot."""
    by_run = {(one.key, one.shot, one.run): one for one in numbers}
    keys = list(dict.fromkeys(key for key, _, run in by_run if run))
    runs = [run for run in RUNS if any((key, SHOTS[0], run) in by_run for key in keys)]
    tables = []
    for shot in SHOTS if keys else ():
        cells = [[name] for name in _names(keys, {(one.key, one.shot): one for one in numbers})]
        for row, key in zip(cells, keys, strict=True):
            found = {run: by_run.get((key, shot, run)) for run in runs}
            seeds = [one.value for run, one in found.items() if one and run != "paper"]
            spread = f"{mean(seeds):.2f}, {stdev(seeds):.2f}" if len(seeds) > 1 else MISSING
            row += [*map(measured_text, found.values()), spread]
        header = ["system", *(RUNS[run] for run in runs), "mean and standard deviation of seeds"]
        names = ", ".join(common_names(keys))
        tables.append(Table(prose("further runs", names=names, shot=shot), header, cells))
    return tables


def _names(keys: Sequence[Key], measured: ByKey) -> list[str]:
    return row_names(keys, [key for key in keys if has_chosen_z(key, measured)])
