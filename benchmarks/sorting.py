"""`python -m benchmarks.sorting FEATURES.npz`: how right and how sure sorting is, on real pictures.

FEATURES are of the grocery photographs, 20 classes x 25, as `protorect extract efficientnet-lite0`
makes them. Writes results/sort.json, and docs/sort.md from it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.sorting_page import sorting_page
from protorect import evaluate
from protorect._utils.files import write_text
from protorect.core.functional import probabilities
from protorect.core.statistics import mean_interval
from protorect.evaluation.features import load_features
from protorect.methods import method
from protorect.uncertainty.classify import DEFAULT_METHOD, classify
from protorect.uncertainty.thresholds import Thresholds

ROOT = Path(__file__).parents[1]
FIGURES, PAGE = ROOT / "results" / "sort.json", ROOT / "docs" / "sort.md"
SEEDS = 20
BINS = 15
UNKNOWN = (0.02, 0.05, 0.08, 0.1, 0.2, 0.3)
KNOWN, FOREIGN = 8, 2  # classes, of each half of them
COVERAGE = 0.8


def main(path: str) -> None:
    """Measure, keep the figures, and make the page from them."""
    features, labels = load_features(path)
    figures = {
        "seeds": SEEDS,
        "method": DEFAULT_METHOD,
        "thresholds": {"unknown": Thresholds().unknown, "unsure": Thresholds().unsure},
        "calibration": [measure_calibration(features, labels, shot) for shot in (1, 2, 5)],
        "unknown": {
            "known": KNOWN,
            "foreign": FOREIGN,
            "chosen": measure_unknown(features, labels, half=0),
            "held_out": measure_unknown(features, labels, half=1),
        },
    }
    write_text(FIGURES, json.dumps(figures, indent=2) + "\n")
    write_text(PAGE, sorting_page(figures))


def measure_calibration(features: NDArray[Any], labels: NDArray[Any], shot: int) -> dict[str, Any]:
    """All classes, the rest of each as the pile: accuracy and calibration error."""
    rows = []
    for seed in range(SEEDS):
        support, known, pile, truth = drawn(features, labels, np.unique(labels), shot, 0, seed)
        found = classify(support, known, pile)
        right = found.best == truth
        plain = plain_probability(support, known, pile)
        rows.append(
            (
                right.mean(),
                calibration_error(plain, right),
                calibration_error(found.probability, right),
                found.probability.mean(),
            )
        )
    accuracy, before, after, confidence = np.array(rows).T
    rest = len(labels) // len(np.unique(labels)) - shot
    episodes = evaluate(
        features,
        labels,
        [DEFAULT_METHOD],
        way=len(np.unique(labels)),
        shot=shot,
        query=rest,
        episodes=200,
        seed=0,
    )[0]
    mean, ci95 = mean_interval(100 * accuracy)
    return {
        "shot": shot,
        "accuracy": float(mean),
        "ci95": float(ci95),
        "evaluate": {"accuracy": episodes.accuracy, "ci95": episodes.ci95},
        "confidence": 100 * float(confidence.mean()),
        "ece_before": 100 * float(before.mean()),
        "ece": 100 * float(after.mean()),
    }


def measure_unknown(features: NDArray[Any], labels: NDArray[Any], half: int) -> dict[str, Any]:
    """Every second class, some of them foreign: who is called unknown."""
    classes = np.unique(labels)[half::2]
    curves, aurocs, kept, all_kept, unfiltered = [], [], [], [], []
    for seed in range(SEEDS):
        ours_only = np.random.default_rng(seed).permutation(classes)[:KNOWN]
        alone = classify(*drawn(features, labels, ours_only, 5, 0, seed)[:3]).ood
        support, known, pile, truth = drawn(features, labels, classes, 5, FOREIGN, seed)
        found = classify(support, known, pile)
        ours, right = truth >= 0, found.best == truth
        aurocs.append(roc_auc_score(~ours, found.ood))
        order = np.argsort(found.ood)[: round(COVERAGE * len(truth))]
        kept.append(right[order][ours[order]].mean())
        all_kept.append(right[order].mean())
        unfiltered.append(right.mean())
        curves.append(
            [
                (
                    (1 - alone < t).mean(),
                    (1 - found.ood < t)[ours].mean(),
                    (1 - found.ood < t)[~ours].mean(),
                )
                for t in UNKNOWN
            ]
        )
    means = 100 * np.array(curves).mean(axis=0)
    return {
        "auroc": float(np.mean(aurocs)),
        "accuracy_all": 100 * float(np.mean(unfiltered)),
        "accuracy_kept": 100 * float(np.mean(all_kept)),
        "accuracy_kept_ours": 100 * float(np.mean(kept)),
        "thresholds": [
            {"unknown": t, "alone": alone, "ours": ours, "foreign": foreign}
            for t, (alone, ours, foreign) in zip(UNKNOWN, means.tolist(), strict=True)
        ],
    }


def drawn(
    features: NDArray[Any],
    labels: NDArray[Any],
    classes: NDArray[Any],
    shot: int,
    foreign: int,
    seed: int,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Examples, their classes, a pile and its classes, -1 for the foreign ones."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(classes)
    support: list[int] = []
    known: list[int] = []
    pile: list[int] = []
    truth: list[int] = []
    for place, name in enumerate(order):
        rows = rng.permutation(np.flatnonzero(labels == name)).tolist()
        ours = place < len(order) - foreign
        if ours:
            support += rows[:shot]
            known += [place] * shot
        pile += rows[shot:]
        truth += [place if ours else -1] * len(rows[shot:])
    rows_of = np.ascontiguousarray(features, np.float32)
    return rows_of[support], np.array(known), rows_of[pile], np.array(truth)


def plain_probability(
    support: NDArray[np.float32], known: NDArray[np.int64], pile: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Of the label, by softmax(10 x cosine) as in the paper."""
    given = method(DEFAULT_METHOD)(
        torch.from_numpy(support)[None], torch.from_numpy(known), torch.from_numpy(pile)[None]
    )
    return np.asarray(probabilities(given)[0].max(dim=-1).values)


def calibration_error(probability: NDArray[Any], right: NDArray[Any]) -> float:
    """Expected calibration error: the mean distance of what is said from what is so, by bins."""
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    gaps = [abs((probability - right)[bins == b].sum()) for b in range(BINS)]
    return float(sum(gaps)) / len(right)


if __name__ == "__main__":
    main(sys.argv[1])
