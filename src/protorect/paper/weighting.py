"""The effect of eq. (6): both weightings over epsilon, and the weight of the support."""

from __future__ import annotations

from typing import Any

import torch

from protorect.core.functional import (
    Options,
    augmented_weights,
    basic_prototypes,
    cross_class_shift,
)
from protorect.core.statistics import Estimate
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.tasks import task_batches
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
        cspn = over_epsilon.others["cspn", shot]
        shares, cosine = _support_shares(table, episodes.with_shot(shot))
        shots[str(shot)] = {"cspn": cspn.accuracy, "cosine": cosine}
        for name in WEIGHTINGS:
            results = over_epsilon.results[name, shot]
            gains = [one.minus(cspn) for one in results]
            shots[str(shot)][name] = {
                "accuracy": [one.accuracy for one in results],
                "ci95": [one.ci95 for one in results],
                "gain": [gain.mean for gain in gains],
                "gain_ci95": [gain.ci95 for gain in gains],
                "support_share": shares[name],
            }
    numbers = [
        setting.measurement(name, shot, Estimate(one.accuracy, one.ci95))
        for (name, shot), one in over_epsilon.others.items()
    ]
    return Measurements(numbers, {"epsilon": list(EPSILONS), "shots": shots})


@torch.inference_mode()
def _support_shares(table: FeatureTable, episodes: Episodes) -> tuple[dict[str, Any], float]:
    """Weight of the labelled samples in the rectified prototypes, and cosine of the other samples.

    The weight, 0 .. 1, is the mean over all classes and tasks, one per weighting and epsilon. The
    cosine is the mean over the queries that join a class, with its basic prototype.
    """
    options = [
        Options(epsilon=epsilon, weighting=name) for name in WEIGHTINGS for epsilon in EPSILONS
    ]
    shares, cosines = [], []
    for _, support, labels, query in task_batches(table, episodes):
        prototypes = basic_prototypes(support, labels, episodes.way)
        shift = cross_class_shift(support, query)
        _, scores = query.shifted_cosines(shift, prototypes)
        weights = [augmented_weights(support, labels, scores, prototypes, one) for one in options]
        shares.append(torch.stack([of_support.sum(dim=-2) for of_support, _, _ in weights]))
        _, of_query, places = weights[0]
        cosines.append(scores.gather(-2, places)[of_query > 0])
    by_weighting = torch.cat(shares, dim=1).mean(dim=(1, 2)).reshape(len(WEIGHTINGS), -1)
    return dict(zip(WEIGHTINGS, by_weighting.tolist(), strict=True)), float(
        torch.cat(cosines).mean()
    )
