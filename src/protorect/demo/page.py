"""The results of the demonstration as a page; its sentences follow from the measured numbers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from protorect._utils.versions import versions
from protorect.core.statistics import Estimate
from protorect.demo.learning import SIZE, TURNS
from protorect.demo.measure import ABLATION, SHOWN, DemoResult
from protorect.demo.plan import BASE, NOVEL, QUERY, WAY
from protorect.demo.z_section import z_section
from protorect.methods import METHODS
from protorect.paper.published import SHOTS
from protorect.report.page import Element, Figure, Page, Section, render_html
from protorect.report.plots.accuracy import accuracy_dots, value_by_epoch
from protorect.report.plots.episodes import episode_pictures
from protorect.report.results import accuracy_text, difference_text, results_table
from protorect.report.table import Table

SHOWN_QUERIES = 8  # per class, in the pictures of an episode
SHOWN_NAMES = {"cspn": "Nearest prototype (CSPN)", "bd-cspn": "Rectified prototypes (BD-CSPN)"}
PARTS = {
    "bd-c": "the shift alone",
    "bd-i": "rectified prototypes alone",
    "bd-cspn": "both together",
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
                Section("How this page was made", [_details(result)]),
            ],
        )
    )


def pixels_table(result: DemoResult, caption: str) -> Table:
    """One row per method: for each shot the accuracy on pixels and the network's gain."""
    header, rows = ["method"], [[name] for name in ABLATION]
    for shot in SHOTS:
        header += [f"{shot}-shot", "network minus pixels"]
        for row in rows:
            network, pixels = result.of(row[0], shot), result.by_pixels[row[0], shot]
            row += [accuracy_text(pixels), difference_text(network.minus(pixels))]
    return Table(caption, header, rows)


def _lead(result: DemoResult) -> str:
    basic, rectified = result.of("cspn", 1), result.of("bd-cspn", 1)
    pixels = result.by_pixels["cspn", 1]
    return (
        f"A small network was trained on the digits {span(BASE)}. Given one labelled example of "
        f"each of the digits {span(NOVEL)}, which it was not trained on, nearest prototypes "
        f"classify {accuracy_text(basic)} % of {WAY * QUERY} other pictures correctly, rectified "
        f"prototypes (BD-CSPN) {accuracy_text(rectified)} %. On the same {result.episodes} tasks, "
        f"rectification {effect_text(rectified.minus(basic))}. With pixels instead of the "
        f"network's features, nearest prototypes reach {accuracy_text(pixels)} %: compared with "
        f"pixels, the network {effect_text(basic.minus(pixels))}."
    )


def _training_section(result: DemoResult) -> Section:
    learned, recipe = result.learned, result.plan.recipe
    first, last = learned.epochs[0], learned.epochs[-1]
    loss = Figure(
        value_by_epoch([epoch.loss for epoch in learned.epochs], "loss"),
        alt=f"Loss by epoch, from {first.loss:.3f} to {last.loss:.3f}.",
        caption=f"Mean loss on the base classes by epoch. In the last epoch: {last.loss:.3f}.",
    )
    accuracy = Figure(
        value_by_epoch([epoch.accuracy for epoch in learned.epochs], "accuracy in %"),
        alt=f"Accuracy by epoch, from {first.accuracy:.1f} % to {last.accuracy:.1f} %.",
        caption=f"Training accuracy on the {learned.base_classes} base classes by epoch. In the "
        f"last epoch: {last.accuracy:.1f} %.",
    )
    return Section(
        "The training",
        [
            f"The pictures are scanned digits of 8 × 8 gray values, enlarged to {SIZE} × {SIZE}. "
            f"The network {recipe.backbone} was trained to classify the base classes with a "
            f"cosine classifier, eq. (1) and (2): the digits {span(BASE)} in {TURNS} rotations by "
            f"90 degrees, each rotation a class of its own, {learned.base_classes} classes with "
            f"{learned.base_pictures} pictures. The digits {span(NOVEL)} are the novel classes; "
            "they are not used in training. The network is that of the last epoch.",
            [loss, accuracy],
        ],
    )


def _task_section(result: DemoResult) -> Section:
    shown = result.shown
    figures = []
    for method, name in SHOWN_NAMES.items():
        predicted = shown.predicted[method]
        correct = predicted == np.arange(WAY)[:, None]
        score = f"{correct.sum()} of {correct.size} correct"
        plotted = correct[:, :SHOWN_QUERIES]
        svg = episode_pictures(
            shown.support,
            shown.query[:, :SHOWN_QUERIES],
            predicted[:, :SHOWN_QUERIES],
            shown.names,
            f"{name}: {score}",
        )
        figures.append(
            Figure(
                svg,
                alt=f"Support pictures of the digits {', '.join(shown.names)} and {SHOWN_QUERIES} "
                f"queries of each; {plotted.sum()} of these {plotted.size} are predicted correctly,"
                " the others have a frame.",
                caption=f"{name}: {score} in the whole episode, {plotted.sum()} of the "
                f"{plotted.size} queries shown here. A thick frame marks a wrong prediction.",
            )
        )
    return Section(
        "What a few-shot task is",
        [
            f"A task, or episode, has {WAY} classes. One labelled picture of each is given: the "
            f"support. {WAY * QUERY} other pictures, {QUERY} per class, are the queries; they are "
            f"classified together, by the network's features. There are {len(NOVEL)} novel digits, "
            "so every episode here has all of them, with different pictures.",
            f"Below is one episode, one row per class: number {shown.number + 1} of "
            f"{result.episodes}, the one in which both methods are nearest to their mean accuracy. "
            f"The first {SHOWN_QUERIES} of the {QUERY} queries of each class are shown.",
            figures,
        ],
    )


def _ablation_section(result: DemoResult) -> Section:
    elements: list[Element] = [
        {f"`{name}`": METHODS[name].summary for name in ABLATION},
        results_table(
            result.ablation,
            f"Accuracy in % with 95 % intervals, {WAY}-way, {QUERY} queries per class, "
            f"{result.episodes} episodes. Differences are paired: both methods, same episodes.",
        ),
    ]
    for shot in SHOTS:
        basic, printed = result.of("cspn", shot), result.of("bd-cspn", shot)
        effects = [
            f"{part} (`{name}`) {effect_text(result.of(name, shot).minus(basic))}"
            for name, part in PARTS.items()
        ]
        classes = effect_text(result.of("bd-cspn-classes", shot).minus(printed))
        elements.append(
            f"{shot}-shot, compared with `cspn`: {', '.join(effects)}. Compared with `bd-cspn`, "
            f"the other interpretation of its weights (`bd-cspn-classes`) {classes}."
        )
    alt = "Accuracy and interval of each method: the numbers of the table above."
    elements.append(Figure(accuracy_dots(result.ablation), alt, "The accuracies of the table."))
    return Section("The gain of each correction", elements)


def _pixels_section(result: DemoResult) -> Section:
    elements: list[Element] = [
        f"The same pictures of the digits {span(NOVEL)}, in the same episodes, can be compared "
        f"without a network, by their {SIZE} × {SIZE} pixels. The network was trained on other "
        f"digits, and {result.learned.base_classes} classes are few: Omniglot has 4112 to train "
        "on. Pixels work well here because every digit fills its picture.",
        pixels_table(
            result,
            "Accuracy in % on pixels, and the gain of the network of the table above (paired), "
            "with 95 % intervals.",
        ),
    ]
    for shot in SHOTS:
        gains = {name: result.of(name, shot).minus(result.by_pixels[name, shot]) for name in SHOWN}
        effects = [f"with `{name}` {effect_text(gain)}" for name, gain in gains.items()]
        elements.append(f"{shot}-shot, compared with pixels, the network {' and '.join(effects)}.")
    return Section("The gain of training on other digits", elements)


def _details(result: DemoResult) -> dict[str, str]:
    """What is needed to get the same page again."""
    plan, recipe = result.plan, result.plan.recipe
    rates = ", ".join(f"{rate:g} at epoch {epoch:g}" for epoch, rate in recipe.rates)
    used = versions() | {name: version(name) for name in ("scikit-learn", "matplotlib", "pillow")}
    return {
        "command": f"protorect demo --episodes {result.episodes} --epochs {recipe.epochs} "
        f"--seed {plan.seed}",
        "data": "scikit-learn's handwritten digits (load_digits), 1797 pictures of 10 classes",
        "training": f"{recipe.backbone}, {recipe.steps_per_epoch} batches of {recipe.batch_size} "
        "pictures per epoch, random crops",
        "epochs": f"{recipe.epochs}; learning rate {rates}, linear in between",
        "features": f"{result.learned.features.shape[1]} values per picture from the network, or "
        f"its {SIZE * SIZE} pixels, normalized",
        "episodes": f"{result.episodes}, {WAY}-way, {' and '.join(map(str, SHOTS))} shots, "
        f"{QUERY} queries per class, the same for every method",
        "seed": f"{plan.seed}, for weights, order, crops and episodes",
        "options": f"Z = {METHODS['bd-cspn'].options.z} unless stated otherwise, "
        f"ε = {METHODS['bd-cspn'].options.epsilon:g}",
        "intervals": "95 %, normal, from the standard deviation over the episodes",
        "versions": ", ".join(f"{name} {number}" for name, number in used.items()),
    }


def span(digits: Sequence[int]) -> str:
    """Format consecutive digits, such as "0 to 4"."""
    return f"{digits[0]} to {digits[-1]}"


def effect_text(difference: Estimate) -> str:
    """Describe a paired difference: a gain or a loss only if its interval excludes zero."""
    size = difference_text(Estimate(abs(difference.mean), difference.ci95)).lstrip("+")
    if difference.mean - difference.ci95 > 0:
        return f"gains {size} points"
    if difference.mean + difference.ci95 < 0:
        return f"loses {size} points"
    return f"shows no clear difference ({difference_text(difference)} points)"
