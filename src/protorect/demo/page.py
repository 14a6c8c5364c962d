"""What the demonstration found, as a page. Whatever it says follows from the results."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from protorect import __version__
from protorect.core.statistics import Estimate
from protorect.demo.learning import SIZE, TURNS
from protorect.demo.measure import ABLATION, SHOWN, DemoResult
from protorect.demo.plan import BASE, NOVEL, QUERY, SHOTS, WAY
from protorect.demo.z_section import z_section
from protorect.methods import METHODS
from protorect.report.page import Element, Figure, Figures, Page, Section, Terms, render_html
from protorect.report.plots.accuracy import accuracy_dots, value_by_epoch
from protorect.report.plots.episodes import episode_pictures
from protorect.report.results import accuracy_text, difference_text, results_table
from protorect.report.table import Table

SHOWN_QUERIES = 8  # of each class, in the pictures of an episode
SHOWN_NAMES = {"cspn": "Nearest prototype (CSPN)", "bd-cspn": "Rectified prototypes (BD-CSPN)"}
PARTS = {
    "bd-c": "the shift alone",
    "bd-i": "joining queries alone",
    "bd-cspn": "the two together",
}


def demo_page(result: DemoResult) -> str:
    """The results as one HTML page that needs no other file."""
    return render_html(
        Page(
            title="Few-shot learning on handwritten digits",
            lead=_lead(result),
            sections=[
                _training_section(result),
                _task_section(result),
                _ablation_section(result),
                _pixels_section(result),
                z_section(result),
                Section("How this page was made", [Terms(_details(result))]),
            ],
        )
    )


def pixels_table(result: DemoResult, caption: str) -> Table:
    """One row per method: for each shot the accuracy on pixels and the network's gain."""
    header, rows = ["method"], [[name] for name in ABLATION]
    for shot in SHOTS:
        header += [f"{shot}-shot", "network more"]
        for row in rows:
            network, pixels = result.of(row[0], shot), result.pixels_of(row[0], shot)
            row += [accuracy_text(pixels), difference_text(network.minus(pixels))]
    return Table(caption, header, rows)


def _lead(result: DemoResult) -> str:
    plain, rectified = result.of("cspn", 1), result.of("bd-cspn", 1)
    pixels = result.pixels_of("cspn", 1)
    return (
        f"A small network was trained on the digits {span(BASE)}. Shown one labelled example of "
        f"each of the digits {span(NOVEL)}, which it was not trained on, nearest prototypes sort "
        f"{accuracy_text(plain)} % of {WAY * QUERY} other pictures right, rectified prototypes "
        f"(BD-CSPN) {accuracy_text(rectified)} %. On the same {result.episodes} tasks, "
        f"rectification {effect_text(rectified.minus(plain))}. With pixels in place of the network "
        f"it is {accuracy_text(pixels)} % for nearest prototypes: against that, the network "
        f"{effect_text(plain.minus(pixels))}."
    )


def _training_section(result: DemoResult) -> Section:
    learned, recipe = result.learned, result.plan.recipe
    last = learned.epochs[-1]
    return Section(
        "What was trained",
        [
            f"The pictures are scanned digits of 8 × 8 grey values, enlarged to {SIZE} × {SIZE}. "
            f"The network {recipe.backbone} learned to tell the base classes apart with a "
            f"cosine classifier, eq. (1) and (2): the digits {span(BASE)} in {TURNS} quarter "
            f"turns, each turn a class of its own, {learned.base_classes} classes with "
            f"{learned.base_pictures} pictures. The digits {span(NOVEL)} are the novel classes. "
            "They had no part in the training, and the network is that of its last epoch.",
            Figures(
                [
                    Figure(
                        value_by_epoch([epoch.loss for epoch in learned.epochs], "loss"),
                        alt=f"Loss by epoch, from {learned.epochs[0].loss:.3f} to {last.loss:.3f}.",
                        caption="Loss on the base classes, mean of an epoch. "
                        f"In the last: {last.loss:.3f}.",
                    ),
                    Figure(
                        value_by_epoch(
                            [epoch.accuracy for epoch in learned.epochs], "accuracy in %"
                        ),
                        alt=f"Accuracy by epoch, from {learned.epochs[0].accuracy:.1f} % to "
                        f"{last.accuracy:.1f} %.",
                        caption=f"Accuracy among the {learned.base_classes} base classes while "
                        f"training. In the last epoch: {last.accuracy:.1f} %.",
                    ),
                ]
            ),
        ],
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
            f"support. {WAY * QUERY} other pictures, {QUERY} a class, are the queries, to be "
            f"labelled all together by the network's features. There are {len(NOVEL)} novel "
            "digits, so every episode here has all of them, in other pictures.",
            "Below is one such episode, a row a class: "
            f"number {shown.number + 1} of {result.episodes}, the one on which both methods come "
            f"nearest to their average. Of the {QUERY} queries of a class the first "
            f"{SHOWN_QUERIES} are drawn.",
            Figures(figures),
        ],
    )


def _ablation_section(result: DemoResult) -> Section:
    blocks: list[Element] = [
        Terms({f"`{name}`": METHODS[name].summary for name in ABLATION}),
        results_table(
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


def _pixels_section(result: DemoResult) -> Section:
    blocks: list[Element] = [
        f"The same pictures of the digits {span(NOVEL)}, in the same episodes, can be compared "
        f"without a network, by their {SIZE} × {SIZE} pixels. What the network knows, it learned "
        f"from other digits, and {result.learned.base_classes} classes are few to learn from: "
        "Omniglot has 4112 to train on. Pixels, for their part, have it easy here: every digit "
        "fills its picture.",
        pixels_table(
            result,
            "Accuracy in % on pixels, and what the network of the table above has more (paired), "
            "with 95 % intervals.",
        ),
    ]
    for shot in SHOTS:
        gains = {name: result.of(name, shot).minus(result.pixels_of(name, shot)) for name in SHOWN}
        effects = [f"with `{name}` {effect_text(gain)}" for name, gain in gains.items()]
        blocks.append(f"{shot}-shot, against pixels, the network {' and '.join(effects)}.")
    return Section("What training on other digits brings", blocks)


def _details(result: DemoResult) -> dict[str, str]:
    """What is needed to get the same page again."""
    plan, recipe = result.plan, result.plan.recipe
    packages = ("numpy", "torch", "scikit-learn", "matplotlib", "pillow")
    rates = ", ".join(f"{rate:g} at epoch {epoch:g}" for epoch, rate in recipe.rates)
    return {
        "command": f"protorect demo --episodes {result.episodes} --epochs {recipe.epochs} "
        f"--seed {plan.seed}",
        "data": "scikit-learn's handwritten digits (load_digits), 1797 pictures of 10 classes",
        "training": f"{recipe.backbone}, {recipe.steps_per_epoch} batches of {recipe.batch_size} "
        "pictures an epoch, random crops",
        "epochs": f"{recipe.epochs}; learning rate {rates}, linear between",
        "features": f"{result.learned.features.shape[1]} values of a picture by the network, or "
        f"its {SIZE * SIZE} pixels, brought to length one",
        "episodes": f"{result.episodes}, {WAY}-way, {' and '.join(map(str, SHOTS))} shots, "
        f"{QUERY} queries a class, the same for every method",
        "seed": f"{plan.seed}, of weights, order, crops and episodes",
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


def span(digits: Sequence[int]) -> str:
    """As in "0 to 4"."""
    return f"{digits[0]} to {digits[-1]}"


def effect_text(difference: Estimate) -> str:
    """What a paired difference shows: a gain or a loss only if its interval excludes zero."""
    size = difference_text(Estimate(abs(difference.mean), difference.ci95)).lstrip("+")
    if difference.mean - difference.ci95 > 0:
        return f"gains {size} points"
    if difference.mean + difference.ci95 < 0:
        return f"loses {size} points"
    return f"shows no clear difference ({difference_text(difference)} points)"
