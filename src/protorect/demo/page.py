"""The page of the demonstration; its numbers and conclusions follow from the measurements."""

import os
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

import numpy as np

from protorect._utils.versions import versions
from protorect.core.statistics import Estimate, mean_interval
from protorect.demo.omniglot import FEATURES, METHODS, NETWORK, WAY, OmniglotResult
from protorect.demo.photographs import EXAMPLES, PICTURES, SORTED
from protorect.demo.strips import episode_strips, folder_strips, is_wrong
from protorect.methods import METHODS as DESCRIBED, method
from protorect.paper.figures import against_z
from protorect.paper.measure import QUERY, Setting
from protorect.paper.published import SHOTS, Key, published_tables, published_values
from protorect.paper.tables import comparison
from protorect.paper.texts import feature_set_name, prose
from protorect.report.page import Highlight, Link, Listing, Page, Section, render_html
from protorect.report.results import accuracy_text, difference_text, results_table
from protorect.report.table import Table
from protorect.sorting.evaluation import Evaluation
from protorect.sorting.sort import SortResult

# Weights of eq. (6) as printed, and its other interpretation, which is nearer to the paper's row.
PRINTED, RECTIFIED = "bd-cspn", "bd-cspn-classes"
TABLE = 6  # of the paper


def demo_page(omniglot: OmniglotResult, photographs: SortResult, out: Path) -> str:
    """The results as one HTML page, to be written to `out`; it links to the sorted folder."""
    basic, rectified = (omniglot.results[name, 1] for name in ("cspn", RECTIFIED))
    lead = (
        "With one labeled drawing of each character, nearest prototypes classify "
        f"{accuracy_text(basic)} % of the other drawings correctly. Prototypes that are rectified "
        f"with these unlabeled drawings reach {accuracy_text(rectified)} %, "
        f"{effect_text(rectified.minus(basic))} on the same episodes. Measured "
        "just now, with data and networks that come with the package."
    )
    summaries = {f"`{name}`": DESCRIBED[name].summary for name in METHODS if name in DESCRIBED}
    sections = [
        _episode_section(omniglot),
        _photographs_section(photographs, out),
        _row_section(omniglot),
        Section("The gain of each correction", [ablation_table(omniglot), summaries]),
        _z_section(omniglot),
        Section("How this page was made", [_details(omniglot)]),
    ]
    highlights = [_omniglot_highlight(omniglot), _photographs_highlight(photographs)]
    return render_html(Page("Prototype rectification, measured", lead, sections, highlights))


def paper_row(omniglot: OmniglotResult) -> Table:
    """The paper's rows of this data set and backbone, published and measured."""
    setting = Setting(FEATURES, episodes=len(omniglot.episodes))
    numbers = [setting.measured(one) for one in omniglot.results.values()]
    measured = {(one.key, one.shot): one for one in numbers}
    table = published_tables()[TABLE]
    rows = [row for row in table.rows if row.key.backbone == FEATURES.backbone]
    return comparison(table._replace(rows=rows), measured)


def ablation_table(omniglot: OmniglotResult) -> Table:
    """Every method at both shots, with its paired difference to CSPN."""
    caption = (
        f"Accuracy in % with 95 % intervals: {feature_set_name(FEATURES)}, {WAY}-way, {QUERY} "
        f"queries per class, {len(omniglot.episodes)} episodes. Differences are paired."
    )
    return results_table(list(omniglot.results.values()), caption)


def sorting_accuracy(evaluation: Evaluation) -> Estimate:
    """Percent of the pictures with the right label, and its interval."""
    right = np.arange(evaluation.pictures) < np.trace(evaluation.counts)
    return mean_interval(100.0 * right)


def effect_text(difference: Estimate) -> str:
    """Describe a paired difference: a gain or a loss only if its interval excludes zero."""
    size = difference_text(Estimate(abs(difference.mean), difference.ci95)).lstrip("+")
    if difference.mean - difference.ci95 > 0:
        return f"a gain of {size} points"
    if difference.mean + difference.ci95 < 0:
        return f"a loss of {size} points"
    return f"no clear difference ({difference_text(difference)} points)"


def _omniglot_highlight(omniglot: OmniglotResult) -> Highlight:
    names = ("cspn", RECTIFIED, PRINTED)
    measured = [omniglot.results[name, 1].accuracy for name in names]
    keys = [Key(FEATURES.dataset, FEATURES.backbone, name) for name in ("cspn", PRINTED)]
    published = [published_values()[key, 1].mean for key in keys]
    return Highlight(
        f"{measured[0]:.1f} → {measured[1]:.1f} %",
        f"of {len(omniglot.episodes) * WAY * QUERY:,} drawings right, one example per class",
        f"The paper's Omniglot row; published {published[0]:.1f} → {published[1]:.1f} %. With the "
        f"weights of eq. (6) as printed: {measured[2]:.1f} %.",
    )


def _photographs_highlight(photographs: SortResult) -> Highlight:
    evaluation = photographs.evaluation
    assert evaluation is not None
    right, estimate = int(np.trace(evaluation.counts)), sorting_accuracy(evaluation)
    per_class = len(photographs.folder.plans[-1].examples) // len(evaluation.classes)
    return Highlight(
        f"{right} of {evaluation.pictures}",
        f"photographs labeled right, {per_class} examples per class",
        f"{len(evaluation.classes)} kinds of groceries: {estimate.mean:.0f} ± "
        f"{estimate.ci95:.0f} %. Nothing was trained.",
    )


def _episode_section(omniglot: OmniglotResult) -> Section:
    """The episode with the most corrected queries, and how many there are in all."""
    before, after = is_wrong(omniglot, "cspn"), is_wrong(omniglot, RECTIFIED)
    corrected, broken = before & ~after, after & ~before
    number = int(corrected.sum(axis=1).argmax())
    return Section(
        "One episode, and what was corrected",
        [
            "Five characters that the network never saw. One drawing of each is labeled (dashed); "
            f"the {QUERY} others are to be classified. Blue: wrong by nearest prototypes, with the "
            "class it was taken for, and right after rectification. Orange: wrong after it.",
            f"This is the episode in which the most was corrected, {corrected[number].sum()} of "
            f"{before[number].sum()} errors. In all {len(omniglot.episodes)} episodes, "
            f"{before.sum()} drawings were wrong; rectification corrected {corrected.sum()} of "
            f"them and made {broken.sum()} new errors.",
            *episode_strips(omniglot, number, RECTIFIED),
        ],
    )


def _photographs_section(photographs: SortResult, out: Path) -> Section:
    evaluation, folder = photographs.evaluation, photographs.folder.root.parent
    assert evaluation is not None
    accepted = f"{evaluation.accepted_accuracy:.0f} % of the {evaluation.accepted} others are right"
    command = (
        f"protorect sort {folder.name}/{PICTURES} --examples {folder.name}/{EXAMPLES} "
        f"--out {folder.name}/{SORTED} --copy --eval"
    )
    aside = evaluation.pictures - evaluation.accepted
    return Section(
        "A folder of photographs, sorted",
        [
            "The same idea without training: a network trained on ImageNet, three examples per "
            "class (dashed), and the folder itself as the unlabeled set. Pictures are in the order "
            f"of their probability; orange ones have a wrong label. {aside} were set aside as "
            f"unsure or unknown; {accepted}.",
            Link("Open the contact sheet", _relative(folder / SORTED / "index.html", out)),
            *folder_strips(photographs),
            "The classes are the first ten of the data set in the order of the alphabet, the "
            "pictures are chosen by a hash of their names.",
            Listing("The same on the command line, or with your own folders:", [command]),
        ],
    )


def _row_section(omniglot: OmniglotResult) -> Section:
    text = (
        f"The network is `{NETWORK}`, which comes with the package. The paper chooses Z on "
        f"validation classes; here it is {method(PRINTED).options.z} throughout."
    )
    return Section("The paper's row", [prose("how to read weights"), text, paper_row(omniglot)])


def _z_section(omniglot: OmniglotResult) -> Section:
    text = (
        "`bd-i` adds up to Z of the queries predicted as a class to its prototype; Z = 0 is `cspn`."
        " Where the accuracy is near 100 %, the line of the theory soon leaves the plot."
    )
    figures = against_z(omniglot.against_z, feature_set_name(FEATURES))
    return Section("How many queries may join a prototype", [text, *figures])


def _details(omniglot: OmniglotResult) -> dict[str, str]:
    """What is needed to get the same page again."""
    count, options = len(omniglot.episodes), method(PRINTED).options
    used = versions() | {name: version(name) for name in ("matplotlib", "pillow")}
    return {
        "command": f"protorect demo --episodes {count} --seed {omniglot.options.seed}",
        "drawings": f"all {len(omniglot.images):,} test drawings of Omniglot (Brenden Lake, MIT), "
        f"{len(omniglot.class_names):,} classes: 423 characters in four rotations",
        "photographs": "Grocery Store data set (Marcus Klasson, MIT), reduced to 192 pixels",
        "episodes": f"{count}, {WAY}-way, {' and '.join(map(str, SHOTS))} shots, {QUERY} queries "
        "per class, the same for every method",
        "options": f"Z = {options.z} unless stated otherwise, ε = {options.epsilon:g}",
        "versions": ", ".join(f"{name} {number}" for name, number in used.items()),
    }


def _relative(path: Path, page: Path) -> str:
    """A link from a page to a file."""
    relative = os.path.relpath(path.resolve(), page.resolve().parent)
    return quote(Path(relative).as_posix())
