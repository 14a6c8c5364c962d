"""How many queries may join a prototype: the section of the page on accuracy against Z."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from protorect.core.functional import Weighting
from protorect.demo.measure import DemoResult, Z
from protorect.demo.plan import SHOTS
from protorect.evaluation.evaluate import Result
from protorect.methods import METHODS
from protorect.report.page import Figure, Figures, Section
from protorect.report.plots.accuracy import Curve, accuracy_against_z, accuracy_limits
from protorect.report.results import accuracy_text, difference_text
from protorect.report.table import Table

READING_NAMES: Mapping[Weighting, str] = {
    "samples": "weights as printed in eq. (6)",
    "classes": "weights from a softmax over the classes",
}


def z_section(result: DemoResult) -> Section:
    """The curves of `bd-i`, the Z that came out best, and what eq. (25) expects."""
    curves = {
        reading: [
            Curve(
                f"{shot}-shot",
                Z,
                [one.accuracy for one in by_shot[shot]],
                [one.ci95 for one in by_shot[shot]],
                result.expected[shot],
            )
            for shot in SHOTS
        ]
        for reading, by_shot in result.curves.items()
    }
    limits = accuracy_limits([curve for both in curves.values() for curve in both])
    figures = [
        Figure(
            accuracy_against_z(both, READING_NAMES[reading].capitalize(), limits),
            alt=f"Accuracy of bd-i against Z, {READING_NAMES[reading]}. "
            + " ".join(_course(shot, result.curves[reading][shot]) for shot in SHOTS),
            caption=f"`bd-i`, {READING_NAMES[reading]}. Solid: measured, with 95 % intervals; "
            "dashed: eq. (25).",
        )
        for reading, both in curves.items()
    ]
    return Section(
        "How many queries may join a prototype",
        [
            "`bd-i` lets up to Z of the queries labelled as a class join its prototype; Z = 0 is "
            "`cspn`. The queries are not shifted here.",
            Figures(figures),
            _best_z_table(result),
            *_theory_text(result),
        ],
    )


def _best_z_table(result: DemoResult) -> Table:
    rows = []
    for reading, by_shot in result.curves.items():
        for shot, results in by_shot.items():
            best = _best(results)
            gains = [one.minus(results[0]) for one in results]
            worse = [str(z) for z, gain in zip(Z, gains, strict=True) if gain.mean + gain.ci95 < 0]
            rows.append(
                [
                    f"{shot}-shot, `{reading}`",
                    str(Z[best]),
                    accuracy_text(results[best]),
                    difference_text(gains[best]),
                    ", ".join(worse) or "none",
                ]
            )
    return Table(
        "The Z that came out best, picked after the fact, and those worse than Z = 0 (the 95 % "
        "interval of the paired difference lies below zero). Weights: `samples` as printed, "
        "`classes` from a softmax over the classes.",
        ["shot, weights", "best Z", "accuracy", "minus Z = 0", "worse than Z = 0"],
        rows,
    )


def _theory_text(result: DemoResult) -> list[str]:
    default = Z.index(METHODS["bd-i"].options.z)
    heights, rises = [], []
    for shot in SHOTS:
        measured, expected = result.curves["samples"][shot], result.expected[shot]
        off = expected[0] - measured[0].accuracy
        side = "above" if off > 0 else "below"
        heights.append(f"{abs(off):.2f} points {side} the measured {shot}-shot accuracy")
        rise, found = expected[default] - expected[0], measured[default].minus(measured[0])
        rises.append(
            f"{rise:+.2f} points at {shot}-shot (measured, `samples`: {difference_text(found)})"
        )
    return [
        "The dashed lines are eq. (25) of the paper, η α / √(λ / (K + Z) + α) for K shots. "
        f"λ = {result.moments.variance:.3f} and α = {result.moments.expectation:.3f} come from the "
        f"features; one η = {result.eta:.1f} is fitted to both accuracies of `cspn`. At Z = 0 that "
        f"is {' and '.join(heights)}. From Z = 0 to Z = {Z[default]} the equation expects "
        f"{' and '.join(rises)}.",
        "The equation takes the queries that join for a fair draw of the right class, so it can "
        "only rise with Z. In truth they are those nearest to the prototype, and they may be of "
        "another class.",
    ]


def _course(shot: int, results: Sequence[Result]) -> str:
    best = _best(results)
    start, top, end = (f"{results[i].accuracy:.1f} % for Z = {Z[i]}" for i in (0, best, -1))
    return f"{shot}-shot: {start}, at most {top}, {end}."


def _best(results: Sequence[Result]) -> int:
    return int(np.argmax([result.accuracy for result in results]))
