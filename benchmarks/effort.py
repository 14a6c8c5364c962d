"""`python -m benchmarks.effort FEATURES...`: how many labels a person gives until most are right.

A simulated person labels one random sample of each class, then ten samples at a time that are
suggested; after every ten all samples are classified again. Samples that the person has labeled
count as right. Classifiers that do not look at unlabeled samples get margin sampling, the usual
choice. Finally the classes are reviewed in pages: wrong samples of a page are labeled, one act
each, and the others accepted in one act.

Adds every feature file under its name to results/effort.json and to the tables of docs/effort.md.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.documents import load_results, save_results
from benchmarks.effort_classifiers import PERSONS, Classifier, Labels, Rows, Suggestion
from protorect._utils.versions import versions
from protorect.core.statistics import mean_interval
from protorect.evaluation.features import read_features
from protorect.report.table import Table

TARGETS = (0.9, 0.95, 0.99)
BATCH, PAGE = 10, 24
LABELS_PER_CLASS = (1, 2, 5)
LABELS_BEFORE_REVIEW = 2  # per class, the first included


OURS, USUAL = "`bd-cspn-plus`, margin without near duplicates", "logistic regression, margin"
REVIEWED = (OURS, USUAL)


class Effort:
    """Samples, which of them are labeled, and what a classifier says of the others."""

    def __init__(self, rows: Rows, truth: Labels, classifier: Classifier, seed: int) -> None:
        self.rows, self.truth, self.classifier = rows, truth, classifier
        random = np.random.default_rng(seed)
        self.labeled = np.zeros(len(rows), bool)
        self.ways = int(truth.max()) + 1
        for way in range(self.ways):
            self.labeled[random.choice(np.flatnonzero(truth == way))] = True
        self.classify()

    def classify(self) -> None:
        """Classify the samples that are not labeled."""
        self.free = np.flatnonzero(~self.labeled)
        known = self.labeled
        self.found = self.classifier(self.rows[known], self.truth[known], self.rows[self.free])

    @property
    def right(self) -> float:
        """Share of all samples whose label is right."""
        wrong = np.count_nonzero(self.found.label != self.truth[self.free])
        return 1 - wrong / len(self.rows)

    def label(self, places: NDArray[np.int64]) -> None:
        """Give some of the free samples their class, and classify the others again."""
        self.labeled[self.free[places]] = True
        self.classify()

    def suggest(self, suggestion: Suggestion) -> None:
        """Label the next ten suggested samples."""
        known = self.rows[self.labeled]
        self.label(suggestion(self.found, self.rows[self.free], known, BATCH))

    def page(self) -> NDArray[np.int64]:
        """The most probable free samples of the class that has most of them."""
        way = np.bincount(self.found.label).argmax()
        members = np.flatnonzero(self.found.label == way)
        return members[np.argsort(-self.found.probability[members], kind="stable")[:PAGE]]


def labels_to_targets(effort: Effort, suggestion: Suggestion, most: int) -> dict[str, Any]:
    """The labels after the first ones until each target is reached, else None; and the curve."""
    curve: list[tuple[int, float]] = []
    while True:
        given = int(effort.labeled.sum()) - effort.ways
        curve.append((given, round(effort.right, 5)))
        if effort.right >= max(TARGETS) or given >= most:
            break
        effort.suggest(suggestion)
    needed = [next((n for n, right in curve if right >= t), None) for t in TARGETS]
    return {"needed": needed, "curve": curve}


def acts_with_review(effort: Effort, suggestion: Suggestion) -> dict[str, int]:
    """Acts, and samples looked at, until 99 % are right: first labels, then pages of a class."""
    while effort.labeled.sum() < LABELS_BEFORE_REVIEW * effort.ways and effort.right < max(TARGETS):
        effort.suggest(suggestion)
    acts = looked = int(effort.labeled.sum())
    while effort.right < max(TARGETS):
        page = effort.page()
        wrong = int(np.count_nonzero(effort.found.label[page] != effort.truth[effort.free[page]]))
        acts += wrong + (wrong < len(page))
        looked += len(page)
        effort.label(page)
    return {"acts": acts, "looked": looked}


def measure(job: tuple[Path, int | None, int | None, str, int, int]) -> dict[str, Any]:
    """What one simulated person needs on one set from one first choice."""
    path, ways, per_class, person, seed, most = job
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of scikit-learn, about classes with few labels
    rows, truth = load(path, ways, per_class)
    classifier, suggestion = PERSONS[person]
    found = labels_to_targets(Effort(rows, truth, classifier, seed), suggestion, most)
    if person in REVIEWED:
        found["review"] = acts_with_review(Effort(rows, truth, classifier, seed), suggestion)
    return found


def load(path: Path, ways: int | None, per_class: int | None) -> tuple[Rows, Labels]:
    """Unit features (n, dim) and labels 0 .. ways - 1; of at most so many classes and of each."""
    features, names, _ = read_features(path)
    truth = np.unique(names, return_inverse=True)[1].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(truth))
    ranks = np.empty(len(truth), np.int64)
    for way in range(int(truth.max()) + 1):
        members = order[truth[order] == way]
        ranks[members] = np.arange(len(members))
    kept = np.flatnonzero((ranks < (per_class or len(truth))) & (truth < (ways or len(truth))))
    rows = np.asarray(features[kept], np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-12), truth[kept]


def main() -> None:
    """Measure, and write the results and the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--ways", type=int, help="use only so many classes, the first")
    parser.add_argument("--per-class", type=int, help="use at most so many samples of each class")
    parser.add_argument("--most", type=float, default=0.5, help="share of labels to stop at")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        for path in options.features:
            _, truth = load(path, options.ways, options.per_class)
            runs = list(product(PERSONS, range(options.seeds)))
            most = round(options.most * len(truth))
            jobs = [
                (path, options.ways, options.per_class, person, seed, most) for person, seed in runs
            ]
            persons: dict[str, list[Any]] = {person: [] for person in PERSONS}
            for (person, _), found in zip(runs, pool.map(measure, jobs), strict=True):
                persons[person].append(found)
                print(path.stem, person, found["needed"], found.get("review", ""), flush=True)
            record = {"samples": len(truth), "ways": int(truth.max()) + 1, "most": most}
            record |= {"persons": persons, "versions": versions()}
            save_results("effort", load_results("effort") | {path.stem: record})


def tables(results: dict[str, Any]) -> dict[str, list[Table]]:
    """One table of labels and one of acts with review per set."""
    labels = [_labels_table(name, record) for name, record in results.items()]
    return {"labels": labels, "review": [_review_table(results)]}


def _labels_table(name: str, record: dict[str, Any]) -> Table:
    persons = record["persons"]
    header = ["classifier, suggestions"]
    header += [f"right with {count} per class" for count in LABELS_PER_CLASS]
    header += [f"labels to {100 * target:.0f} %" for target in TARGETS]
    header.append("of logistic regression's at 95 %")
    rows = []
    for person, runs in persons.items():
        shares = [_share(runs, (count - 1) * record["ways"]) for count in LABELS_PER_CLASS]
        cells = [_cell([run["needed"][place] for run in runs]) for place in range(len(TARGETS))]
        rows.append([person, *shares, *cells, _ratio(runs, persons[USUAL])])
    everything = [f"{target * record['samples'] - record['ways']:.0f}" for target in TARGETS]
    rows.append(["none, all labeled", *[""] * len(LABELS_PER_CLASS), *everything, ""])
    seeds = len(persons[OURS])
    caption = (
        f"{name}: {record['samples']} samples of {record['ways']} classes; % right, and labels "
        f"after the first of each class until so many are right; means of {seeds} choices of the "
        f"first labels with 95 % intervals. A dash: not always reached with {record['most']} more."
    )
    return Table(caption, header, rows)


def _review_table(results: dict[str, Any]) -> Table:
    header = [
        "set",
        *(f"{person}: {what}" for person in REVIEWED for what in ("acts", "looked at")),
    ]
    rows = []
    for name, record in results.items():
        runs = [[run["review"] for run in record["persons"][person]] for person in REVIEWED]
        cells = [_cell([run[key] for run in some]) for some in runs for key in ("acts", "looked")]
        rows.append([name, *cells])
    caption = f"Acts until 99 % are right: {LABELS_BEFORE_REVIEW} labels per class, then review."
    return Table(caption, header, rows)


def _share(runs: list[dict[str, Any]], given: int) -> str:
    """Mean share that is right with so many labels after the first ones, in %."""
    reached = [
        next((r for n, r in run["curve"] if n >= given), run["curve"][-1][1]) for run in runs
    ]
    mean, interval = mean_interval(100 * np.array(reached))
    return f"{mean:.1f} ± {interval:.1f}"


def _cell(values: list[int | None]) -> str:
    """Mean and interval; a dash if any of them is not known."""
    known = [float(value) for value in values if value is not None]
    if len(known) < len(values):
        return "-"
    mean, interval = mean_interval(known)
    return f"{mean:.0f} ± {interval:.0f}"


def _ratio(runs: list[dict[str, Any]], usual: list[dict[str, Any]]) -> str:
    at = TARGETS.index(0.95)
    pairs = [
        (one["needed"][at], other["needed"][at]) for one, other in zip(runs, usual, strict=True)
    ]
    if any(None in pair for pair in pairs):
        return "-"
    return f"{np.mean([a for a, _ in pairs]) / np.mean([b for _, b in pairs]):.2f}"


if __name__ == "__main__":
    main()
