"""The results of the demonstration as a page; its sentences follow from the measured numbers."""

from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from protorect._utils.versions import versions
from protorect.core.statistics import Estimate
from protorect.demo.digits import BASE, NOVEL, QUERY, SIZE, TURNS, WAY, DemoResult
from protorect.methods import METHODS, PAPER
from protorect.paper.figures import against_z, typical_episode
from protorect.paper.published import SHOTS
from protorect.report.page import Figure, Page, Section, render_html
from protorect.report.plots.accuracy import value_by_epoch
from protorect.report.plots.episodes import episode_pictures
from protorect.report.results import accuracy_text, difference_text, results_table
from protorect.report.table import Table

SHOWN_QUERIES = 8  # per class, in the pictures of an episode
SHOWN_METHODS = {"cspn": "Nearest prototype (CSPN)", "bd-cspn": "Rectified prototypes (BD-CSPN)"}


def demo_page(result: DemoResult) -> str:
    """The results as one HTML page that needs no other file."""
    basic, rectified = result.by_network["cspn", 1], result.by_network["bd-cspn", 1]
    pixels = result.by_pixels["cspn", 1]
    lead = (
        f"A small network was trained on the digits {span(BASE)}. Given one labelled example of "
        f"each of the digits {span(NOVEL)}, which it was not trained on, nearest prototypes "
        f"classify {accuracy_text(basic)} % of {WAY * QUERY} other pictures correctly, rectified "
        f"prototypes (BD-CSPN) {accuracy_text(rectified)} %. On the same "
        f"{len(result.plan.episodes)} tasks, rectification {effect_text(rectified.minus(basic))}. "
        f"With pixels instead of the network's features, nearest prototypes reach "
        f"{accuracy_text(pixels)} %: compared with pixels, the network "
        f"{effect_text(basic.minus(pixels))}."
    )
    sections = [
        _training_section(result),
        _task_section(result),
        _ablation_section(result),
        _pixels_section(result),
        _z_section(result),
        Section("How this page was made", [_details(result)]),
    ]
    return render_html(Page("Few-shot learning on handwritten digits", lead, sections))


def _training_section(result: DemoResult) -> Section:
    learned = result.learned
    figures = []
    for values, unit in ((learned.losses, "loss"), (learned.accuracies, "accuracy in %")):
        text = f"Training {unit} by epoch; in the last epoch: {values[-1]:.3g}."
        figures.append(Figure(value_by_epoch(values, unit), alt=text, caption=text))
    return Section(
        "The training",
        [
            f"The pictures are scanned digits of 8 × 8 gray values, enlarged to {SIZE} × {SIZE}. "
            f"The network {result.plan.recipe.backbone} was trained to classify the base classes "
            f"with a cosine classifier, eq. (1) and (2): the digits {span(BASE)} in {TURNS} "
            "rotations by 90 degrees, each rotation a class of its own, "
            f"{learned.base_classes} classes with {learned.base_pictures} pictures. The digits "
            f"{span(NOVEL)} are the novel classes; they are not used in training. The network is "
            "that of the last epoch.",
            figures,
        ],
    )


def _task_section(result: DemoResult) -> Section:
    """One episode in pictures, with the predictions of two methods."""
    pictures, episodes = result.learned.pictures, result.plan.episodes
    results = {name: result.by_network[name, 1] for name in SHOWN_METHODS}
    number = typical_episode(list(results.values()))
    support = episodes.support[number, :, 0]
    query = episodes.query[number].reshape(WAY, QUERY)[:, :SHOWN_QUERIES]  # ordered by class
    names = [str(label) for label in result.learned.labels[support]]
    figures = []
    for method, name in SHOWN_METHODS.items():
        predicted = results[method].predictions[number].reshape(WAY, QUERY)
        correct = (predicted == np.arange(WAY)[:, None]).sum()
        text = f"{name}: {correct} of {WAY * QUERY} correct"
        shown = predicted[:, :SHOWN_QUERIES]
        svg = episode_pictures(pictures[support], pictures[query], shown, names, text)
        caption = f"{text}. A thick frame marks a wrong prediction."
        alt = f"Support and {SHOWN_QUERIES} queries of each of the digits {', '.join(names)}."
        figures.append(Figure(svg, f"{alt} {caption}", caption))
    return Section(
        "What a few-shot task is",
        [
            f"A task, or episode, has {WAY} classes. One labelled picture of each is given: the "
            f"support. {WAY * QUERY} other pictures, {QUERY} per class, are the queries; they are "
            f"classified together, by the network's features. There are {len(NOVEL)} novel digits, "
            "so every episode here has all of them, with different pictures.",
            f"Below is one episode, one row per class: number {number + 1} of {len(episodes)}, the "
            "one in which both methods are nearest to their mean accuracy. The first "
            f"{SHOWN_QUERIES} of the {QUERY} queries of each class are shown.",
            figures,
        ],
    )


def _ablation_section(result: DemoResult) -> Section:
    caption = (
        f"Accuracy in % with 95 % intervals, {WAY}-way, {QUERY} queries per class, "
        f"{len(result.plan.episodes)} episodes. Differences are paired: both methods, same "
        "episodes."
    )
    table = results_table(list(result.by_network.values()), caption)
    summaries = {f"`{name}`": METHODS[name].summary for name in PAPER}
    return Section("The gain of each correction", [summaries, table])


def _pixels_section(result: DemoResult) -> Section:
    return Section(
        "The gain of training on other digits",
        [
            f"The same pictures of the digits {span(NOVEL)}, in the same episodes, can be compared "
            f"without a network, by their {SIZE} × {SIZE} pixels. The network was trained on other "
            f"digits, and {result.learned.base_classes} classes are few: Omniglot has 4112 to "
            "train on. Pixels work well here because every digit fills its picture.",
            pixels_table(
                result,
                "Accuracy in % on pixels, and the gain of the network of the table above "
                "(paired), with 95 % intervals.",
            ),
        ],
    )


def pixels_table(result: DemoResult, caption: str) -> Table:
    """One row per method: for each shot the accuracy on pixels and the network's gain."""
    header, rows = ["method"], [[name] for name in PAPER]
    for shot in SHOTS:
        header += [f"{shot}-shot", "network minus pixels"]
        for row in rows:
            network, pixels = result.by_network[row[0], shot], result.by_pixels[row[0], shot]
            row += [accuracy_text(pixels), difference_text(network.minus(pixels))]
    return Table(caption, header, rows)


def _z_section(result: DemoResult) -> Section:
    """The curves of bd-i, the accuracy that eq. (25) expects, and the best Z."""
    rows = []
    for (weighting, shot), results in result.over_z.items():
        best = int(np.argmax([one.accuracy for one in results]))
        gain = difference_text(results[best].minus(results[0]))
        z = str(result.against_z["z"][best])
        rows.append([f"{shot}-shot, `{weighting}`", z, accuracy_text(results[best]), gain])
    caption = (
        "The best Z, chosen on these same episodes. Weights: `samples` as printed, `classes` from "
        "a softmax over the classes."
    )
    header = ["shot, weights", "best Z", "accuracy", "minus Z = 0"]
    return Section(
        "How many queries may join a prototype",
        [
            "`bd-i` adds up to Z of the queries predicted as a class to its prototype; Z = 0 is "
            "`cspn`. The queries are not shifted here.",
            *against_z(result.against_z, "handwritten digits"),
            Table(caption, header, rows),
        ],
    )


def _details(result: DemoResult) -> dict[str, str]:
    """What is needed to get the same page again."""
    plan, recipe, episodes = result.plan, result.plan.recipe, len(result.plan.episodes)
    options = METHODS["bd-cspn"].options
    rates = ", ".join(f"{rate:g} at epoch {epoch:g}" for epoch, rate in recipe.rates)
    used = versions() | {name: version(name) for name in ("scikit-learn", "matplotlib", "pillow")}
    return {
        "command": f"protorect demo --episodes {episodes} --epochs {recipe.epochs} "
        f"--seed {plan.seed}",
        "data": "scikit-learn's handwritten digits (load_digits), 1797 pictures of 10 classes",
        "training": f"{recipe.backbone}, {recipe.steps_per_epoch} batches of "
        f"{recipe.batch_size} pictures per epoch, random crops",
        "epochs": f"{recipe.epochs}; learning rate {rates}, linear in between",
        "episodes": f"{episodes}, {WAY}-way, {' and '.join(map(str, SHOTS))} shots, "
        f"{QUERY} queries per class, the same for every method",
        "options": f"Z = {options.z} unless stated otherwise, ε = {options.epsilon:g}",
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
