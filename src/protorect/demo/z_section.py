"""The section of the page on accuracy against Z, the number of queries that may join a class."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from protorect.core.functional import Weighting
from protorect.demo.measure import DemoResult, Z
from protorect.evaluation.evaluate import Result
from protorect.methods import METHODS
from protorect.paper.published import SHOTS
from protorect.report.page import Figure, Section
from protorect.report.plots.accuracy import Curve, accuracy_against_z, accuracy_limits
from protorect.report.results import accuracy_text, difference_text
from protorect.report.table import Table

WEIGHTING_NAMES: dict[Weighting, str] = {
    "samples": "weights as printed in eq. (6)",
    "classes": "weights from a softmax over the classes",
}


def z_section(result: DemoResult) -> Section:
    """The curves of `bd-i`, the best Z, and the accuracy that eq. (25) expects."""
    curves = {
        (weighting, shot): Curve(
            f"{shot}-shot",
            Z,
            [one.accuracy for one in results],
            [one.ci95 for one in results],
            result.theory.expected[shot],
        )
        for (weighting, shot), results in result.over_z.results.items()
    }
    limits = accuracy_limits(list(curves.values()))
    figures = []
    for weighting, name in WEIGHTING_NAMES.items():
        both = [curves[weighting, shot] for shot in SHOTS]
        described = [_curve_text(shot, result.over_z.results[weighting, shot]) for shot in SHOTS]
        figures.append(
            Figure(
                accuracy_against_z(both, name.capitalize(), limits),
                alt=f"Accuracy of bd-i against Z, {name}. {' '.join(described)}",
                caption=f"`bd-i`, {name}. Solid: measured, with 95 % intervals; dashed: eq. (25).",
            )
        )
    return Section(
        "How many queries may join a prototype",
        [
            "`bd-i` adds up to Z of the queries predicted as a class to its prototype; Z = 0 is "
            "`cspn`. The queries are not shifted here.",
            figures,
            _best_z_table(result),
            *_theory_text(result),
        ],
    )


def _best_z_table(result: DemoResult) -> Table:
    rows = []
    for weighting, shot in product(WEIGHTING_NAMES, SHOTS):
        results = result.over_z.results[weighting, shot]
        best = _best(results)
        gains = [one.minus(results[0]) for one in results]
        worse = [str(z) for z, gain in zip(Z, gains, strict=True) if gain.mean + gain.ci95 < 0]
        name, accuracy = f"{shot}-shot, `{weighting}`", accuracy_text(results[best])
        gain = difference_text(gains[best])
        rows.append([name, str(Z[best]), accuracy, gain, ", ".join(worse) or "none"])
    return Table(
        "The best Z, chosen on these same episodes, and every Z that is worse than Z = 0 (the 95 % "
        "interval of the paired difference lies below zero). Weights: `samples` as printed, "
        "`classes` from a softmax over the classes.",
        ["shot, weights", "best Z", "accuracy", "minus Z = 0", "worse than Z = 0"],
        rows,
    )


def _theory_text(result: DemoResult) -> list[str]:
    default = Z.index(METHODS["bd-i"].options.z)
    moments, eta, expected = result.theory
    offsets, rises = [], []
    for shot in SHOTS:
        measured = result.over_z.results["samples", shot]
        offset = expected[shot][0] - measured[0].accuracy
        side = "above" if offset > 0 else "below"
        offsets.append(f"{abs(offset):.2f} points {side} the measured {shot}-shot accuracy")
        rise = expected[shot][default] - expected[shot][0]
        gain = difference_text(measured[default].minus(measured[0]))
        rises.append(f"{rise:+.2f} points at {shot}-shot (measured, `samples`: {gain})")
    return [
        "The dashed lines are eq. (25) of the paper, η α / √(λ / (K + Z) + α) for K shots. "
        f"λ = {moments.variance:.3f} and α = {moments.expectation:.3f} are computed from the "
        f"features; one η = {eta:.1f} is fitted to both accuracies of `cspn`. At Z = 0 the "
        f"equation is {' and '.join(offsets)}. From Z = 0 to Z = {Z[default]} it expects a gain of "
        f"{' and '.join(rises)}.",
        "The equation assumes that the queries that join a prototype are a random sample of the "
        "right class, so it always rises with Z. In fact they are the queries nearest to the "
        "prototype, and some may belong to another class.",
    ]


def _curve_text(shot: int, results: Sequence[Result]) -> str:
    best = _best(results)
    start, top, end = (f"{results[i].accuracy:.1f} % for Z = {Z[i]}" for i in (0, best, -1))
    return f"{shot}-shot: {start}, maximum {top}, {end}."


def _best(results: Sequence[Result]) -> int:
    return int(np.argmax([result.accuracy for result in results]))
