"""Classifiers and suggestions that simulated persons of `benchmarks.effort` use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from protorect.methods import METHODS
from protorect.uncertainty.calibrated import UNCALIBRATED
from protorect.uncertainty.suggest import diverse_order, near_duplicates_last

FOLDS = 3
CANDIDATES, LOCALITY = 100, 4  # of the suggestions by density


class Predicted(NamedTuple):
    """Predictions of the unlabeled samples."""

    label: NDArray[np.int64]
    probability: NDArray[np.float64]  # of the label, or any score with the same order
    margin: NDArray[np.float64]  # to the second most probable class


Rows, Labels = NDArray[np.float32], NDArray[np.int64]
Classifier = Callable[[Rows, Labels, Rows], Predicted]
Suggestion = Callable[[Predicted, Rows, Rows, int], NDArray[np.int64]]


def plus(support: Rows, labels: Labels, unlabeled: Rows) -> Predicted:
    """`bd-cspn-plus`; calibration would change no label."""
    task = torch.from_numpy(support)[None], torch.from_numpy(labels), torch.from_numpy(unlabeled)
    with torch.inference_mode():
        scores = METHODS["bd-cspn-plus"].fit(*task[:2], task[2][None]).unlabeled_scores[0]
        return _of_scores(torch.softmax(scores / UNCALIBRATED.temperature, dim=1).double().numpy())


def logistic(support: Rows, labels: Labels, unlabeled: Rows) -> Predicted:
    """Logistic regression, its C by cross-validation where every class has two labels."""
    model = LogisticRegression(C=10, class_weight="balanced", max_iter=500)
    folds = min(FOLDS, int(np.bincount(labels).min()))
    if folds > 1:
        parts = StratifiedKFold(folds, shuffle=True, random_state=0)
        model = GridSearchCV(model, {"C": [0.1, 1, 10, 100]}, cv=parts)
    support, unlabeled = _in_span(support, unlabeled)
    return _of_scores(model.fit(support, labels).predict_proba(unlabeled))


def ridge(support: Rows, labels: Labels, unlabeled: Rows) -> Predicted:
    """Ridge regression on one-hot labels."""
    support, unlabeled = _in_span(support, unlabeled)
    model = RidgeClassifier(class_weight="balanced").fit(support, labels)
    scores = model.decision_function(unlabeled)
    return _of_scores(scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1))


def forest(support: Rows, labels: Labels, unlabeled: Rows) -> Predicted:
    """Random forest of 200 trees."""
    model = RandomForestClassifier(200, class_weight="balanced", random_state=0)
    return _of_scores(model.fit(support, labels).predict_proba(unlabeled))


def _in_span(support: Rows, unlabeled: Rows) -> tuple[Rows, Rows]:
    """The same samples in an orthonormal basis of the support.

    The weights of a model with a squared penalty lie in the span of the samples that it is fitted
    to, so that the model is the same; it is fitted faster.
    """
    _, _, basis = np.linalg.svd(support, full_matrices=False)
    return support @ basis.T, unlabeled @ basis.T


def _of_scores(scores: NDArray[np.float64]) -> Predicted:
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    return Predicted(scores.argmax(axis=1), first, first - second)


def by_margin(found: Predicted, rows: Rows, known: Rows, count: int) -> NDArray[np.int64]:
    """The smallest margins."""
    return np.argsort(found.margin, kind="stable")[:count]


def by_diversity(found: Predicted, rows: Rows, known: Rows, count: int) -> NDArray[np.int64]:
    """The farthest from all labeled samples and from each other."""
    return diverse_order(torch.from_numpy(rows), count, torch.from_numpy(known))


def by_different_margins(
    found: Predicted, rows: Rows, known: Rows, count: int
) -> NDArray[np.int64]:
    """The smallest margins, without samples that are nearly the same: what `protorect` suggests."""
    closest = np.argsort(found.margin, kind="stable")[: 4 * count + 50]
    return closest[near_duplicates_last(torch.from_numpy(rows[closest]))][:count]


def by_density(found: Predicted, rows: Rows, known: Rows, count: int) -> NDArray[np.int64]:
    """Small margins of samples that are similar to many others with a small margin.

    What is similar to a chosen sample counts no more, so that the chosen ones differ.
    """
    closest = np.argsort(found.margin, kind="stable")[:CANDIDATES]
    similar = (rows[closest] @ rows[closest].T).clip(0, 1) ** LOCALITY
    doubt = 1 - found.margin[closest]
    left, chosen = doubt.copy(), []
    for _ in range(min(count, len(closest))):
        gain = doubt * (similar @ left)
        gain[chosen] = -1
        chosen.append(int(gain.argmax()))
        left *= 1 - similar[chosen[-1]]
    return closest[chosen]


def at_random(found: Predicted, rows: Rows, known: Rows, count: int) -> NDArray[np.int64]:
    """Any."""
    return np.random.default_rng(len(known)).permutation(len(rows))[:count]


PERSONS: dict[str, tuple[Classifier, Suggestion]] = {
    "`bd-cspn-plus`, margin without near duplicates": (plus, by_different_margins),
    "`bd-cspn-plus`, margin": (plus, by_margin),
    "`bd-cspn-plus`, margin and density": (plus, by_density),
    "`bd-cspn-plus`, diverse": (plus, by_diversity),
    "`bd-cspn-plus`, random": (plus, at_random),
    "logistic regression, margin": (logistic, by_margin),
    "ridge, margin": (ridge, by_margin),
    "random forest, margin": (forest, by_margin),
}
