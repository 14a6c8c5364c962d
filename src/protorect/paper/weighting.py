"""The effect of eq. (6): both weightings over epsilon, and the weight of the support."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from protorect.core.functional import (
    Options,
    Weighting,
    augmented_weights,
    basic_prototypes,
    cross_class_shift,
)
from protorect.core.statistics import Estimate
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.tasks import TaskBatch, task_batches
from protorect.methods import METHODS
from protorect.paper.measure import Job, Measurements
from protorect.paper.published import SHOTS
from protorect.paper.sweep import WEIGHTINGS, sweep

EPSILONS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0)
PRINTED_EPSILON = METHODS["bd-cspn"].options.epsilon


def weighting(job: Job) -> Measurements:
    """Accuracy with each weighting and epsilon, its gain over CSPN, and the weight of the support.

    Z is the paper's 8 throughout, so that only the weights differ.
    """
    (setting,) = job.settings
    features, labels = job.test.features, job.test.labels
    episodes = job.sample_episodes(setting)
    variants = ("bd-cspn", "epsilon", EPSILONS)
    over_epsilon = sweep(features, labels, variants, job.methods, episodes, job.progress)
    table = FeatureTable.of(features, labels)
    shots: dict[str, Any] = {}
    for shot in SHOTS:
        cspn, of_shot = over_epsilon.others["cspn", shot], episodes.with_shot(shot)
        shots[str(shot)] = {"cspn": cspn.accuracy, "cosine": mean_cosine(table, of_shot)}
        for name in WEIGHTINGS:
            results = over_epsilon.results[name, shot]
            gains = [one.minus(cspn) for one in results]
            shots[str(shot)][name] = {
                "accuracy": [one.accuracy for one in results],
                "ci95": [one.ci95 for one in results],
                "gain": [gain.mean for gain in gains],
                "gain_ci95": [gain.ci95 for gain in gains],
                "support_share": [
                    support_share(table, of_shot, name, epsilon) for epsilon in EPSILONS
                ],
            }
    numbers = [
        setting.measurement(name, shot, Estimate(one.accuracy, one.ci95))
        for (name, shot), one in over_epsilon.others.items()
    ]
    return Measurements(numbers, {"epsilon": list(EPSILONS), "shots": shots})


@torch.inference_mode()
def support_share(
    table: FeatureTable, episodes: Episodes, name: Weighting, epsilon: float
) -> float:
    """Mean weight of the labelled samples in the rectified prototypes, 0 .. 1."""
    options = Options(epsilon=epsilon, weighting=name)
    shares = []
    for task in task_batches(table, episodes):
        prototypes, scores = _shifted_scores(task, episodes.way)
        weights, _, _ = augmented_weights(task.support, task.labels, scores, prototypes, options)
        shares.append(weights.sum(dim=-2))
    return float(torch.cat(shares).mean())


@torch.inference_mode()
def mean_cosine(table: FeatureTable, episodes: Episodes) -> float:
    """Mean cosine of the queries that join a class with its basic prototype."""
    options = Options(epsilon=0.0)  # equal weights: a query that joins has a positive one
    cosines = []
    for task in task_batches(table, episodes):
        prototypes, scores = _shifted_scores(task, episodes.way)
        _, weights, places = augmented_weights(
            task.support, task.labels, scores, prototypes, options
        )
        cosines.append(scores.gather(-2, places)[weights > 0])
    return float(torch.cat(cosines).mean())


def _shifted_scores(task: TaskBatch, ways: int) -> tuple[Tensor, Tensor]:
    """Basic prototypes and the cosines of the shifted queries with them."""
    prototypes = basic_prototypes(task.support, task.labels, ways)
    shift = cross_class_shift(task.support, task.query)
    return prototypes, task.query.shifted_cosines(shift, prototypes)[1]
