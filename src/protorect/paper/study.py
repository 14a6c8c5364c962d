"""What eq. (6) does, told from the results: a table, a figure and a plain answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from protorect.paper.figures import source_title
from protorect.paper.names import READINGS
from protorect.paper.published import SHOTS, Key, published
from protorect.paper.record import Record
from protorect.paper.sources import Source
from protorect.paper.weighting import PRINTED_EPSILON
from protorect.report.page import Element, Figure, Figures
from protorect.report.plots.accuracy import Curve, curves_on_log_axis
from protorect.report.table import Table

QUESTION = (
    "The rectified prototype is a weighted sum of the labelled samples and the queries that join, "
    "eq. (5). Eq. (6) as printed takes a softmax of ε times the cosine over the samples of one "
    "class. The other reading takes each sample's softmax over the classes and then divides by the "
    "sum within the class. The paper fixes ε at 10; here it runs from 1 to 50, everything else as "
    "in BD-CSPN with Z = 8. A gain is the paired difference to CSPN on the same episodes."
)


def weights_blocks(record: Record, sources: Sequence[Source]) -> list[Element]:
    """The study of every source that was measured."""
    blocks: list[Element] = [QUESTION]
    for source in sources:
        if source.name in record.drawings:
            study = record.drawings[source.name]
            blocks += [
                _table(study, source),
                _answer(study, source),
                Figures([_figure(study, source, shot) for shot in SHOTS]),
            ]
    return blocks


def _table(study: Mapping[str, Any], source: Source) -> Table:
    header = ["ε"]
    for shot in SHOTS:
        header += [f"{shot}-shot gain, {name}" for name in READINGS.values()]
    header += [f"support's weight at 1-shot, {name}" for name in READINGS.values()]
    rows = []
    for number, epsilon in enumerate(study["epsilon"]):
        row = [f"{epsilon:g}"]
        for shot in SHOTS:
            curves = study["shots"][str(shot)]
            row += [
                f"{curves[r]['gain'][number]:+.2f} ± {curves[r]['gain_ci95'][number]:.2f}"
                for r in READINGS
            ]
        shares = [study["shots"]["1"][reading]["support_share"][number] for reading in READINGS]
        rows.append([*row, *(f"{100 * share:.0f} %" for share in shares)])
    printed = _printed_gains(source)
    rows.append(
        [
            "published, ε = 10",
            *(f"{printed[shot]:+.2f}" for shot in SHOTS for _ in READINGS),
            "",
            "",
        ]
    )
    return Table(
        f"{source_title(source)}: gain over CSPN in points, and the share of the labelled sample "
        "in the rectified prototype.",
        header,
        rows,
    )


def _answer(study: Mapping[str, Any], source: Source) -> str:
    at = study["epsilon"].index(PRINTED_EPSILON)
    said = [_said(study["shots"][str(shot)], at, source, shot) for shot in SHOTS]
    one = study["shots"]["1"]
    share = {reading: 100 * one[reading]["support_share"][at] for reading in READINGS}
    return (
        f"{source_title(source)}. {' '.join(said)} Why: at 1-shot the basic prototype is the "
        "labelled sample itself, whose cosine is 1, and the queries that join have a cosine of "
        f"{one['cosine']:.2f} on average. As printed, the labelled sample keeps "
        f"{share['samples']:.0f} % of the weight, and by as much the prototype stays where it was; "
        f"with class weights it keeps {share['classes']:.0f} %, about as much as each query."
    )


def _said(curves: Mapping[str, Any], at: int, source: Source, shot: int) -> str:
    """What both readings give at the printed epsilon, and which is nearer to the paper's gain."""
    printed = _printed_gains(source)[shot]
    gains = {reading: curves[reading]["gain"][at] for reading in READINGS}
    told = " and ".join(
        f"{READINGS[reading]} gain {gain:+.2f} (to {curves[reading]['accuracy'][at]:.2f})"
        for reading, gain in gains.items()
    )
    apart = math.hypot(*(curves[reading]["gain_ci95"][at] for reading in READINGS))
    nearer = min(gains, key=lambda reading: abs(gains[reading] - printed))
    clear = abs(gains["samples"] - gains["classes"]) > apart
    end = f"{READINGS[nearer]} come nearer" if clear else "no clear difference between them"
    return (
        f"At {shot}-shot and ε = {PRINTED_EPSILON:g} the paper's gain is {printed:+.2f} (to "
        f"{_printed(source, 'bd-cspn', shot):.2f}); {told}: {end}."
    )


def _printed(source: Source, system: str, shot: int) -> float:
    wanted = (Key(source.dataset, source.backbone, system), shot)
    return next(value.mean for key, k, value in published().values() if (key, k) == wanted)


def _printed_gains(source: Source) -> dict[int, float]:
    """BD-CSPN minus CSPN as the paper prints them for this source."""
    return {
        shot: _printed(source, "bd-cspn", shot) - _printed(source, "cspn", shot) for shot in SHOTS
    }


def _figure(study: Mapping[str, Any], source: Source, shot: int) -> Figure:
    curves = study["shots"][str(shot)]
    lines = [
        Curve(name, study["epsilon"], curves[reading]["gain"], curves[reading]["gain_ci95"])
        for reading, name in READINGS.items()
    ]
    return Figure(
        curves_on_log_axis(
            lines,
            ("ε", "gain over CSPN in points"),
            [("published", _printed_gains(source)[shot])],
            f"{source_title(source)}, {shot}-shot",
        ),
        alt=f"Gain over CSPN against epsilon on {source_title(source)} at {shot}-shot: the numbers "
        "of the table.",
        caption=f"{source_title(source)}, {shot}-shot: gain over CSPN against ε, with 95 % "
        "intervals of the paired difference; dashed: the gain the paper prints.",
    )
