"""What the demonstration found, as a page. Whatever it says follows from the results."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np

from protorect import __version__
from protorect.demo.measure import ABLATION, QUERY, SHOTS, WAY, DemoResult, Z
from protorect.evaluation import Result
from protorect.functional import Weighting
from protorect.methods import METHODS
from protorect.report.page import (
    Block,
    Figure,
    Figures,
    Page,
    Section,
    Table,
    Terms,
    render,
    results_block,
)
from protorect.report.plots import (
    ZCurve,
    accuracy_against_z,
    accuracy_dots,
    accuracy_limits,
    episode_pictures,
)
from protorect.report.tables import accuracy_text, difference_text
from protorect.stats import Estimate

SHOWN_QUERIES = 8  # of each class, in the pictures of an episode
SHOWN_NAMES = {"cspn": "Nearest prototype (CSPN)", "bd-cspn": "Rectified prototypes (BD-CSPN)"}
PARTS = {
    "bd-c": "the shift alone",
    "bd-i": "joining queries alone",
    "bd-cspn": "the two together",
}
READING_NAMES: Mapping[Weighting, str] = {
    "samples": "weights as printed in eq. (6)",
    "classes": "weights from a softmax over the classes",
}


def demo_page(result: DemoResult) -> str:
    """The results as one HTML page that needs no other file."""
    return render(
        Page(
            title="Few-shot learning on handwritten digits",
            lead=_lead(result),
            sections=[
                _task_section(result),
                _ablation_section(result),
                _z_section(result),
                Section("How this page was made", [Terms(_details(result))]),
            ],
        )
    )


def _lead(result: DemoResult) -> str:
    plain, rectified = result.of("cspn", 1), result.of("bd-cspn", 1)
    return (
        f"Shown one labelled example of each of {WAY} digits, nearest prototypes sort "
        f"{accuracy_text(plain)} % of {WAY * QUERY} other pictures right, rectified prototypes "
        f"(BD-CSPN) {accuracy_text(rectified)} %. On the same {result.episodes} tasks, "
        f"rectification {effect_text(rectified.minus(plain))}."
    )


def _task_section(result: DemoResult) -> Section:
    shown = result.shown
    figures = []
    for method, name in SHOWN_NAMES.items():
        predicted = shown.predicted[method]
        right = predicted == np.arange(WAY)[:, None]
        score = f"{right.sum()} of {right.size} right"
        seen = right[:, :SHOWN_QUERIES]
        figures.append(
            Figure(
                episode_pictures(
                    shown.support,
                    shown.query[:, :SHOWN_QUERIES],
                    predicted[:, :SHOWN_QUERIES],
                    shown.names,
                    f"{name}: {score}",
                    cmap="gray_r",
                ),
                alt=f"Support pictures of the digits {', '.join(shown.names)} and "
                f"{SHOWN_QUERIES} queries of each; {seen.sum()} of these {seen.size} are labelled "
                "right, the others are framed.",
                caption=f"{name}: {score} in the whole episode, {seen.sum()} of the {seen.size} "
                "queries drawn here. A thick frame marks a wrong label.",
            )
        )
    return Section(
        "What a few-shot task is",
        [
            f"A task, or episode, has {WAY} classes. Of each, one labelled picture is given: the "
            f"support. The {WAY * QUERY} other pictures, {QUERY} a class, are the queries, to be "
            "labelled all together. The pictures are scanned digits of 8 × 8 grey values, and "
            "these 64 numbers are the features: no network was trained.",
            "Below is one such episode, a row a class: "
            f"number {shown.number + 1} of {result.episodes}, the one on which both methods come "
            f"nearest to their average. Of the {QUERY} queries of a class the first "
            f"{SHOWN_QUERIES} are drawn.",
            Figures(figures),
        ],
    )


def _ablation_section(result: DemoResult) -> Section:
    blocks: list[Block] = [
        Terms({f"`{name}`": METHODS[name].summary for name in ABLATION}),
        results_block(
            result.ablation,
            f"Accuracy in % with 95 % intervals, {WAY}-way, {QUERY} queries a class, "
            f"{result.episodes} episodes. Differences are paired: both methods, same episodes.",
        ),
    ]
    for shot in SHOTS:
        plain, printed = result.of("cspn", shot), result.of("bd-cspn", shot)
        effects = [
            f"{part} (`{name}`) {effect_text(result.of(name, shot).minus(plain))}"
            for name, part in PARTS.items()
        ]
        other = effect_text(result.of("bd-cspn-classes", shot).minus(printed))
        blocks.append(
            f"{shot}-shot, against `cspn`: {', '.join(effects)}. Against `bd-cspn`, the other "
            f"reading of its weights (`bd-cspn-classes`) {other}."
        )
    blocks.append(
        Figure(
            accuracy_dots(result.ablation),
            alt="Accuracy and interval of each method: the numbers of the table above.",
            caption="The accuracies of the table.",
        )
    )
    return Section("What each correction brings", blocks)


def _z_section(result: DemoResult) -> Section:
    curves = {
        reading: [
            ZCurve.of(f"{shot}-shot", Z, by_shot[shot], result.expected[shot]) for shot in SHOTS
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


def _details(result: DemoResult) -> dict[str, str]:
    """What is needed to get the same page again."""
    packages = ("numpy", "torch", "scikit-learn", "matplotlib")
    return {
        "command": f"protorect demo --episodes {result.episodes} --seed {result.seed}",
        "data": "scikit-learn's handwritten digits (load_digits), 1797 pictures of 10 classes",
        "features": "64 grey values of a picture, brought to length one",
        "episodes": f"{result.episodes}, {WAY}-way, {' and '.join(map(str, SHOTS))} shots, "
        f"{QUERY} queries a class, the same for every method",
        "seed": str(result.seed),
        "options": f"Z = {METHODS['bd-cspn'].options.z} where not said otherwise, "
        f"ε = {METHODS['bd-cspn'].options.epsilon:g}",
        "intervals": "95 %, normal, from the deviation over the episodes",
        "versions": ", ".join(
            [
                f"protorect {__version__}",
                f"Python {platform.python_version()}",
                *(f"{name} {version(name)}" for name in packages),
            ]
        ),
    }


def effect_text(difference: Estimate) -> str:
    """What a paired difference shows: a gain or a loss only if its interval excludes zero."""
    size = difference_text(Estimate(abs(difference.mean), difference.ci95)).lstrip("+")
    if difference.mean - difference.ci95 > 0:
        return f"gains {size} points"
    if difference.mean + difference.ci95 < 0:
        return f"loses {size} points"
    return f"shows no clear difference ({difference_text(difference)} points)"


def _course(shot: int, results: Sequence[Result]) -> str:
    best = _best(results)
    start, top, end = (f"{results[i].accuracy:.1f} % for Z = {Z[i]}" for i in (0, best, -1))
    return f"{shot}-shot: {start}, at most {top}, {end}."


def _best(results: Sequence[Result]) -> int:
    return int(np.argmax([result.accuracy for result in results]))
