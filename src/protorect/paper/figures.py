"""Figures of the page, drawn from the numbers that results keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from protorect.paper.names import BACKBONES, DATASETS, READINGS, system_name
from protorect.paper.published import SHOTS
from protorect.paper.record import Measured, Record
from protorect.paper.sources import Source
from protorect.report.page import Element, Figure, Figures
from protorect.report.plots.accuracy import (
    Curve,
    accuracy_against_z,
    accuracy_limits,
    grouped_bars,
)
from protorect.report.plots.episodes import bias_by_class, prototypes_in_episode, queries_shifted

QUANTITIES = {"accuracy": "accuracy", "map": "mAP"}


def source_title(source: Source) -> str:
    """Such as "Omniglot, ConvNet-64"."""
    return f"{DATASETS[source.dataset]}, {BACKBONES[source.backbone]}"


def drawn_figures(record: Record, sources: Sequence[Source]) -> list[Element]:
    """Figures 2 and 3 of the paper and the bias plot, for every source that was measured."""
    blocks: list[Element] = []
    for source in sources:
        if source.name in record.drawings:
            held, where = record.drawings[source.name], source_title(source)
            blocks += [
                Figures(_against_z(held, where)),
                _theory(held["against_z"]),
                Figures([_episode(held, where), _shift(held, where)]),
                Figures(_bias(held, where)),
                _bias_text(held["bias"]),
            ]
    return blocks


def _against_z(held: Mapping[str, Any], where: str) -> list[Figure]:
    numbers = held["against_z"]
    curves = {
        reading: [
            Curve(
                f"{shot}-shot",
                numbers["z"],
                numbers[reading][str(shot)]["accuracy"],
                numbers[reading][str(shot)]["ci95"],
                numbers["expected"][str(shot)],
            )
            for shot in SHOTS
        ]
        for reading in READINGS
    }
    limits = accuracy_limits([curve for both in curves.values() for curve in both])
    return [
        Figure(
            accuracy_against_z(both, f"{where}: {READINGS[reading]}", limits),
            alt=f"Accuracy of BD_i-CSPN against Z on {where}, {READINGS[reading]}. "
            + " ".join(_course(numbers, reading, shot) for shot in SHOTS),
            caption=f"As Fig. 2: BD_i-CSPN on {where}, {READINGS[reading]}, without the shift. "
            "Solid: measured, with 95 % intervals; dashed: eq. (25).",
        )
        for reading, both in curves.items()
    ]


def _course(numbers: Mapping[str, Any], reading: str, shot: int) -> str:
    accuracy = numbers[reading][str(shot)]["accuracy"]
    best = max(range(len(accuracy)), key=accuracy.__getitem__)
    return (
        f"{shot}-shot: {accuracy[0]:.2f} % for Z = 0, at most {accuracy[best]:.2f} % for "
        f"Z = {numbers['z'][best]}."
    )


def _theory(numbers: Mapping[str, Any]) -> str:
    return (
        f"The dashed lines have λ = {numbers['variance']:.3f} and α = {numbers['expectation']:.3f} "
        f"from the features and η = {numbers['eta']:.1f} fitted to the accuracies of CSPN. The "
        "equation takes the queries that join for a fair draw of the right class, so it can only "
        "rise with Z, and nothing in it stops at 100 %."
    )


def _episode(held: Mapping[str, Any], where: str) -> Figure:
    parts = {name: part for name, part in held["episode"].items() if name != "number"}
    return Figure(
        prototypes_in_episode(**parts, title=f"{where}: prototypes"),
        alt=f"t-SNE of the queries of five classes of {where} and of three prototypes of each.",
        caption=f"As Fig. 3 (a): t-SNE of a 5-way 1-shot episode (number "
        f"{held['episode']['number'] + 1} of {held['episodes']}, the one nearest to the mean "
        "accuracies). Star: basic prototype, the one labelled sample; diamond: rectified (class "
        "weights, Z = 8); triangle: expected, the mean of all samples of the class in the episode. "
        "Dotted: the bias; solid: what is left of it.",
    )


def _shift(held: Mapping[str, Any], where: str) -> Figure:
    parts = {name: part for name, part in held["shift"].items() if name != "number"}
    return Figure(
        queries_shifted(**parts, title=f"{where}: the shift"),
        alt=f"t-SNE of the queries of the same episode of {where} before and after the shift.",
        caption="As Fig. 3 (b): t-SNE of the same episode, queries before (hollow) and after the "
        "shift (filled) in one projection. Enlarged: the class that moved most. Plus: mean of the "
        "support; crosses: means of the queries before (hollow) and after.",
    )


def _bias(held: Mapping[str, Any], where: str) -> list[Figure]:
    figures = []
    for shot in SHOTS:
        bias = held["bias"][str(shot)]
        drawn, mean = bias["drawn"], bias["mean"]
        rectified = {READINGS[reading]: drawn[reading] for reading in READINGS}
        figures.append(
            Figure(
                bias_by_class(drawn["basic"], rectified, f"{where}: bias at {shot}-shot"),
                alt=f"Angle to the expected prototype on {where} at {shot}-shot, a dot a class. "
                f"Mean {mean['basic']:.1f} degrees for basic, {mean['samples']:.1f} and "
                f"{mean['classes']:.1f} for rectified prototypes.",
                caption=f"{shot}-shot: angle to the expected prototype, the mean of all features "
                f"of the class. A dot is a class, the mean over its episodes; "
                f"{len(drawn['basic'])} of {bias['classes']} classes are drawn. Below the dashed "
                "line rectification came nearer.",
            )
        )
    return figures


def _bias_text(bias: Mapping[str, Any]) -> str:
    said = []
    for shot in SHOTS:
        mean, nearer = bias[str(shot)]["mean"], bias[str(shot)]["nearer"]
        ways = " and ".join(
            f"{mean[reading]:.1f} with {READINGS[reading]} ({100 * nearer[reading]:.1f} % of the "
            "classes nearer)"
            for reading in READINGS
        )
        said.append(f"At {shot}-shot the bias is {mean['basic']:.1f} degrees on average, {ways}.")
    return " ".join(said)


def robust_figures(measured: Sequence[Measured], sources: Sequence[Source]) -> list[Element]:
    """The robust test as bars: accuracy and mAP, for every source that was measured."""
    blocks: list[Element] = []
    for source in sources:
        own = [one for one in measured if Source(one.dataset, one.backbone) == source]
        where = source_title(source)
        for quantity, name in QUANTITIES.items() if own else ():
            figures = [_robust(own, where, shot, quantity, name) for shot in SHOTS]
            blocks.append(Figures(figures))
    return blocks


def _robust(own: Sequence[Measured], where: str, shot: int, quantity: str, name: str) -> Figure:
    chosen = [one for one in own if (one.shot, one.quantity) == (shot, quantity)]
    classes = sorted({one.distractors for one in chosen})
    bars = {}
    for method in dict.fromkeys(one.method for one in chosen):
        found = {one.distractors: one for one in chosen if one.method == method}
        ordered = [found[number] for number in classes]
        ci95 = [one.ci95 or 0.0 for one in ordered]
        bars[system_name(method)] = ([one.value for one in ordered], ci95)
    text = "; ".join(
        f"{system_name(one.method)}, N' = {one.distractors}: {one.value:.1f} %" for one in chosen
    )
    return Figure(
        grouped_bars(
            [f"N' = {number}" for number in classes],
            bars,
            f"{name} in %",
            f"{where}, {shot}-shot: {name}",
        ),
        alt=f"{name} at {shot}-shot on {where}. {text}.",
        caption=f"{where}, {shot}-shot {name} with N' distractor classes; 95 % intervals. The axis "
        "does not start at 0.",
    )
