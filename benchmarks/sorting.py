"""`python -m benchmarks.sorting GROCERIES.npz [MORE.npz ...]`: accuracy and calibration of sorting.

GROCERIES are features of the grocery photographs, 20 classes x 25, as `protorect extract
efficientnet-lite2` makes them; of MORE 20 classes x 25 are used, for calibration only. Writes
results/sort.json and the tables of docs/sort.md.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmarks.documents import save_results
from protorect import evaluate
from protorect.core.functional import probabilities
from protorect.core.statistics import mean_interval
from protorect.evaluation.features import load_features
from protorect.methods import method
from protorect.report.table import Table
from protorect.uncertainty.classify import DEFAULT_METHOD, classify
from protorect.uncertainty.expected_accuracy import expected_accuracy
from protorect.uncertainty.thresholds import Thresholds

SEEDS, EPISODES = 20, 100
BINS = 15
UNKNOWN = (0.02, 0.05, 0.08, 0.1, 0.2, 0.3)
KNOWN, DISTRACTORS = 8, 2  # classes of each half
SHOTS = (1, 2, 3, 5, 10)
COVERAGE = 0.8


def main(paths: list[str]) -> None:
    """Measure, and write the results and the document."""
    features, labels = load_features(paths[0])
    results = {
        "seeds": SEEDS,
        "method": DEFAULT_METHOD,
        "thresholds": {"unknown": Thresholds().unknown, "unsure": Thresholds().unsure},
        "calibration": [
            {"features": Path(path).stem, **measure_calibration(*twenty_classes(path), shot)}
            for path in paths
            for shot in SHOTS
        ],
        "unknown": {
            "known": KNOWN,
            "distractors": DISTRACTORS,
            "selection": measure_unknown(features, labels, half=0),
            "test": measure_unknown(features, labels, half=1),
        },
    }
    save_results("sort", results)


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Accuracy and calibration, and what is set aside as unknown."""
    unknown = results["unknown"]
    test = unknown["test"]
    return {
        "calibration": Table(
            f"`{results['method']}`, means over {results['seeds']} random choices of the "
            "examples. *expected* is the mean of the expected accuracies, *within* the share of "
            "these choices whose accuracy is in the interval of the expected one; the default of "
            f"`--unsure` is {results['thresholds']['unsure']:g}.",
            [
                *("features", "examples per class", "accuracy", "expected"),
                *("within", "ECE plain", "ECE calibrated", "`evaluate`"),
            ],
            [
                [
                    f"`{row['features']}`",
                    str(row["shot"]),
                    f"{row['accuracy']:.1f} ± {row['ci95']:.1f}",
                    f"{row['confidence']:.1f}",
                    f"{row['within']:.0f} %",
                    f"{row['ece_before']:.1f}",
                    f"{row['ece']:.1f}",
                    f"{row['evaluate']['accuracy']:.1f} ± {row['evaluate']['ci95']:.1f}",
                ]
                for row in results["calibration"]
            ],
        ),
        "unknown": Table(
            f"Share of pictures set aside as unknown. {unknown['known']} classes, 5 examples each, "
            f"alone or with {unknown['distractors']} distractor classes; the default of "
            f"`--unknown` is {results['thresholds']['unknown']:g}.",
            ["`--unknown`", "no distractors", "known classes beside distractors", "distractors"],
            [
                [
                    f"{row['unknown']:g}",
                    *(
                        f"{row[key]:.0f} %"
                        for key in ("without_distractors", "known", "distractors")
                    ),
                ]
                for row in test["thresholds"]
            ],
        ),
        "ood": Table(
            "",
            ["with distractors", "value"],
            [
                ["area under the ROC curve", f"{test['auroc']:.3f}"],
                [
                    "the same on the classes it was designed on",
                    f"{unknown['selection']['auroc']:.3f}",
                ],
                ["accuracy on all pictures", f"{test['accuracy_all']:.1f} %"],
                [
                    f"accuracy on the {100 * COVERAGE:.0f} % with the lowest `ood`",
                    f"{test['accuracy_kept']:.1f} %",
                ],
                [
                    "accuracy on those of them that are of known classes",
                    f"{test['accuracy_kept_known']:.1f} %",
                ],
            ],
        ),
    }


def twenty_classes(path: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Features and labels of 20 classes, evenly spaced, 25 pictures each."""
    features, labels = load_features(path)
    names = np.unique(labels)
    chosen = names[np.linspace(0, len(names) - 1, min(20, len(names))).astype(int)]
    rows = np.concatenate([np.flatnonzero(labels == name)[:25] for name in chosen])
    return features[rows], labels[rows]


def measure_calibration(features: NDArray[Any], labels: NDArray[Any], shot: int) -> dict[str, Any]:
    """Accuracy and calibration error with all classes, the rest of each class as queries."""
    names, outcomes, rows = np.unique(labels), [], []
    for seed in range(SEEDS):
        support, way, query, truth = sample_task(features, labels, names, shot, 0, seed)
        result = classify(support, way, query)
        correct = result.best == truth
        outcomes.append([plain_probability(support, way, query), result.probability, correct])
        expected = expected_accuracy(result.probability, 0, len(way))
        value, low, high = expected or (0.0, 0.0, 0.0)
        rows.append((correct.mean(), value, low <= correct.mean() <= high))
    accuracy, confidence, within = np.array(rows, float).T
    plain, calibrated, right = np.concatenate(outcomes, axis=1)
    shape = {"way": len(names), "shot": shot, "query": len(labels) // len(names) - shot}
    episodes = evaluate(features, labels, [DEFAULT_METHOD], episodes=EPISODES, seed=0, **shape)[0]
    mean, ci95 = mean_interval(100 * accuracy)
    return {
        "shot": shot,
        "accuracy": float(mean),
        "ci95": float(ci95),
        "evaluate": {"accuracy": episodes.accuracy, "ci95": episodes.ci95},
        "confidence": 100 * float(confidence.mean()),
        "within": 100 * float(within.mean()),
        "ece_before": 100 * calibration_error(plain, right),
        "ece": 100 * calibration_error(calibrated, right),
    }


def measure_unknown(features: NDArray[Any], labels: NDArray[Any], half: int) -> dict[str, Any]:
    """Share of pictures set aside as unknown, in every second class, and accuracy."""
    classes = np.unique(labels)[half::2]
    shares, aurocs, kept, all_kept, unfiltered = [], [], [], [], []
    for seed in range(SEEDS):
        known_classes = np.random.default_rng(seed).permutation(classes)[:KNOWN]
        alone = classify(*sample_task(features, labels, known_classes, 5, 0, seed)[:3]).ood
        support, way, query, truth = sample_task(features, labels, classes, 5, DISTRACTORS, seed)
        result = classify(support, way, query)
        known, correct = truth >= 0, result.best == truth
        aurocs.append(roc_auc_score(~known, result.ood))
        order = np.argsort(result.ood)[: round(COVERAGE * len(truth))]
        kept.append(correct[order][known[order]].mean())
        all_kept.append(correct[order].mean())
        unfiltered.append(correct.mean())
        unknown = [1 - result.ood < t for t in UNKNOWN]
        shares.append(
            [
                ((1 - alone < t).mean(), below[known].mean(), below[~known].mean())
                for t, below in zip(UNKNOWN, unknown, strict=True)
            ]
        )
    means = 100 * np.array(shares).mean(axis=0)
    return {
        "auroc": float(np.mean(aurocs)),
        "accuracy_all": 100 * float(np.mean(unfiltered)),
        "accuracy_kept": 100 * float(np.mean(all_kept)),
        "accuracy_kept_known": 100 * float(np.mean(kept)),
        "thresholds": [
            {"unknown": t, "without_distractors": alone, "known": known, "distractors": distractors}
            for t, (alone, known, distractors) in zip(UNKNOWN, means.tolist(), strict=True)
        ],
    }


def sample_task(
    features: NDArray[Any],
    labels: NDArray[Any],
    classes: NDArray[Any],
    shot: int,
    distractors: int,
    seed: int,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Examples, their classes, queries and their classes, -1 for distractors."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(classes)
    support: list[int] = []
    way: list[int] = []
    query: list[int] = []
    truth: list[int] = []
    for position, name in enumerate(order):
        rows = rng.permutation(np.flatnonzero(labels == name)).tolist()
        known = position < len(order) - distractors
        if known:
            support += rows[:shot]
            way += [position] * shot
        query += rows[shot:]
        truth += [position if known else -1] * len(rows[shot:])
    matrix = np.ascontiguousarray(features, np.float32)
    return matrix[support], np.array(way), matrix[query], np.array(truth)


def plain_probability(
    support: NDArray[np.float32], way: NDArray[np.int64], query: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Probability of the predicted class by softmax(10 x cosine), as in the paper."""
    scores = method(DEFAULT_METHOD)(
        torch.from_numpy(support)[None], torch.from_numpy(way), torch.from_numpy(query)[None]
    )
    return np.asarray(probabilities(scores)[0].max(dim=-1).values)


def calibration_error(probability: NDArray[Any], correct: NDArray[Any]) -> float:
    """Expected calibration error: mean gap between probability and accuracy over equal bins."""
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    gaps = [abs((probability - correct)[bins == b].sum()) for b in range(BINS)]
    return float(sum(gaps)) / len(correct)


if __name__ == "__main__":
    main(sys.argv[1:])
