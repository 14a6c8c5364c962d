"""Figures of the page, plotted from the data that records hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from protorect.paper.feature_sets import FeatureSet
from protorect.paper.names import QUANTITIES, WEIGHTINGS, feature_set_name, system_name
from protorect.paper.prose import prose
from protorect.paper.published import SHOTS
from protorect.paper.record import Measurement
from protorect.paper.tables import published_gain
from protorect.report.page import Element, Figure
from protorect.report.plots.accuracy import (
    Curve,
    accuracy_against_z,
    accuracy_limits,
    curves_on_log_axis,
    grouped_bars,
)
from protorect.report.plots.episodes import bias_by_class, prototypes_in_episode, queries_shifted


def paper_figures(data: Mapping[str, Any], features: FeatureSet) -> list[Element]:
    """Figures 2 and 3 of the paper and the bias of the prototypes, for one feature set."""
    where, over_z = feature_set_name(features), data["against_z"]
    theory = {name: over_z[name] for name in ("variance", "expectation", "eta")}
    return [
        _against_z(over_z, where),
        prose("theory", **theory),
        [_episode(data, where), _shift(data, where)],
        [_bias(data["bias"][str(shot)], where, shot) for shot in SHOTS],
        " ".join(_bias_text(data["bias"][str(shot)], shot) for shot in SHOTS),
    ]


def _against_z(over_z: Mapping[str, Any], where: str) -> list[Figure]:
    curves = {
        weighting: [
            Curve(
                f"{shot}-shot",
                over_z["z"],
                over_z[weighting][str(shot)]["accuracy"],
                over_z[weighting][str(shot)]["ci95"],
                over_z["expected"][str(shot)],
            )
            for shot in SHOTS
        ]
        for weighting in WEIGHTINGS
    }
    limits = accuracy_limits([curve for both in curves.values() for curve in both])
    figures = []
    for weighting, name in WEIGHTINGS.items():
        described = " ".join(_curve_text(over_z, weighting, shot) for shot in SHOTS)
        figures.append(
            Figure(
                accuracy_against_z(curves[weighting], f"{where}: {name}", limits),
                alt=prose("against Z alt", where=where, weighting=name, curves=described),
                caption=prose("against Z caption", where=where, weighting=name),
            )
        )
    return figures


def _curve_text(over_z: Mapping[str, Any], weighting: str, shot: int) -> str:
    accuracy = over_z[weighting][str(shot)]["accuracy"]
    best = max(accuracy)
    best_z = over_z["z"][accuracy.index(best)]
    return prose("against Z curve", shot=shot, start=accuracy[0], best=best, best_z=best_z)


def _episode(data: Mapping[str, Any], where: str) -> Figure:
    parts = dict(data["episode"])
    number = parts.pop("number") + 1
    return Figure(
        prototypes_in_episode(**parts, title=f"{where}: prototypes"),
        alt=prose("episode alt", where=where),
        caption=prose("episode caption", number=number, episodes=data["episodes"]),
    )


def _shift(data: Mapping[str, Any], where: str) -> Figure:
    parts = {name: part for name, part in data["shift"].items() if name != "number"}
    return Figure(
        queries_shifted(**parts, title=f"{where}: the shift"),
        alt=prose("shift alt", where=where),
        caption=prose("shift caption"),
    )


def _bias(bias: Mapping[str, Any], where: str, shot: int) -> Figure:
    shown = bias["drawn"]
    rectified = {name: shown[weighting] for weighting, name in WEIGHTINGS.items()}
    classes = {"shown": len(shown["basic"]), "classes": bias["classes"]}
    return Figure(
        bias_by_class(shown["basic"], rectified, f"{where}: bias at {shot}-shot"),
        alt=prose("bias alt", where=where, shot=shot, **bias["mean"]),
        caption=prose("bias caption", shot=shot, **classes),
    )


def _bias_text(bias: Mapping[str, Any], shot: int) -> str:
    rectified = " and ".join(
        prose(
            "bias of a weighting",
            mean=bias["mean"][weighting],
            weighting=name,
            nearer=100 * bias["nearer"][weighting],
        )
        for weighting, name in WEIGHTINGS.items()
    )
    return prose("bias", shot=shot, basic=bias["mean"]["basic"], rectified=rectified)


def robust_figures(numbers: Sequence[Measurement], features: FeatureSet) -> list[Element]:
    """The robust test as bars: accuracy and mAP, for one feature set."""
    own = [one for one in numbers if FeatureSet(one.dataset, one.backbone) == features]
    return [
        [_robust(own, feature_set_name(features), shot, name) for shot in SHOTS]
        for name in QUANTITIES
        if own
    ]


def _robust(own: Sequence[Measurement], where: str, shot: int, quantity: str) -> Figure:
    chosen = [one for one in own if (one.shot, one.quantity) == (shot, quantity)]
    distractors = sorted({one.distractors for one in chosen})
    bars = {}
    for method in dict.fromkeys(one.method for one in chosen):
        by_distractors = {one.distractors: one for one in chosen if one.method == method}
        ordered = [by_distractors[number] for number in distractors]
        ci95 = [one.ci95 or 0.0 for one in ordered]
        bars[system_name(method)] = ([one.value for one in ordered], ci95)
    values = [
        f"{system_name(one.method)}, N' = {one.distractors}: {one.value:.1f} %" for one in chosen
    ]
    name, groups = QUANTITIES[quantity], [f"N' = {number}" for number in distractors]
    shared = {"where": where, "shot": shot, "quantity": name}
    return Figure(
        grouped_bars(groups, bars, f"{name} in %", f"{where}, {shot}-shot: {name}"),
        alt=prose("robust alt", values="; ".join(values), **shared),
        caption=prose("robust caption", **shared),
    )


def weights_figures(study: Mapping[str, Any], features: FeatureSet) -> list[Figure]:
    """Gain over CSPN against epsilon for one feature set, one figure per shot."""
    where, figures = feature_set_name(features), []
    for shot in SHOTS:
        curves = study["shots"][str(shot)]
        lines = [
            Curve(name, study["epsilon"], curves[key]["gain"], curves[key]["gain_ci95"])
            for key, name in WEIGHTINGS.items()
        ]
        svg = curves_on_log_axis(
            lines,
            ("ε", "gain over CSPN in points"),
            ("published", published_gain(features, shot)),
            f"{where}, {shot}-shot",
        )
        texts = (
            prose(f"weights figure {kind}", where=where, shot=shot) for kind in ("alt", "caption")
        )
        figures.append(Figure(svg, *texts))
    return figures
