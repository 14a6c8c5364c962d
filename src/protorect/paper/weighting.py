"""What eq. (6) does: the printed weights against the class-softmax reading, over epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import torch

from protorect._utils.progress import Progress
from protorect.core.functional import (
    Options,
    Weighting,
    augmented_weights,
    basic_prototypes,
    cross_class_shift,
)
from protorect.core.unit_rows import UnitRows
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.evaluate import evaluate
from protorect.methods import METHODS
from protorect.paper.measure import Findings, Setting, drawn, measured
from protorect.paper.published import SHOTS
from protorect.paper.sources import SourceFeatures
from protorect.paper.tasks import tasks

EPSILONS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0)
READINGS: tuple[Weighting, ...] = get_args(Weighting)
PRINTED_EPSILON = METHODS["bd-cspn"].options.epsilon
PLAIN = "cspn"


def weighting_study(
    features: SourceFeatures,
    methods: Sequence[str],
    settings: Sequence[Setting],
    seed: int,
    progress: Progress | None,
) -> Findings:
    """Accuracy of both readings for each epsilon, and how much the support weighs.

    Z is the paper's 8 throughout, so that nothing but the weights differs. `methods` are those
    to compare with.
    """
    (setting,) = settings
    episodes = drawn(features.test, setting, seed)
    spelled = {
        (reading, epsilon): f"bd-cspn:epsilon={epsilon},weighting={reading}"
        for reading in READINGS
        for epsilon in EPSILONS
    }
    results = evaluate(
        features.test.features,
        features.test.labels,
        [*methods, *spelled.values()],
        shot=SHOTS,
        episodes=episodes,
        progress=progress,
    )
    found = {(one.method, one.shot): one for one in results}
    study: dict[str, Any] = {"epsilon": list(EPSILONS), "shots": {}}
    for shot in SHOTS:
        plain = found[PLAIN, shot]
        curves: dict[str, Any] = {"cspn": plain.accuracy}
        for reading in READINGS:
            ordered = [found[spelled[reading, epsilon], shot] for epsilon in EPSILONS]
            gains = [one.minus(plain) for one in ordered]
            curves[reading] = {
                "accuracy": [one.accuracy for one in ordered],
                "ci95": [one.ci95 for one in ordered],
                "gain": [gain.mean for gain in gains],
                "gain_ci95": [gain.ci95 for gain in gains],
                "support_share": [
                    support_share(features, episodes.with_shot(shot), reading, epsilon)
                    for epsilon in EPSILONS
                ],
            }
        curves["cosine"] = mean_cosine(features, episodes.with_shot(shot))
        study["shots"][str(shot)] = curves
    kept = [
        measured(setting, one.method, one.shot, one.accuracy, one.ci95)
        for one in results
        if one.method in methods
    ]
    return Findings(kept, study)


@torch.inference_mode()
def support_share(
    features: SourceFeatures, episodes: Episodes, reading: Weighting, epsilon: float
) -> float:
    """Mean weight of the labelled samples in the rectified prototypes, 0 .. 1."""
    options = Options(epsilon=epsilon, weighting=reading)
    shares = []
    for _, support, labels, query in tasks(features.test.features, episodes):
        prototypes, scores = _shifted_scores(support, labels, query, episodes.way)
        of_support, _, _ = augmented_weights(support, labels, scores, prototypes, options)
        shares.append(of_support.sum(dim=-2).mean())
    return float(torch.stack(shares).mean())


@torch.inference_mode()
def mean_cosine(features: SourceFeatures, episodes: Episodes) -> float:
    """Mean cosine of the queries that join a class with its basic prototype."""
    options = Options(epsilon=0.0)  # all that join weigh the same
    cosines = []
    for _, support, labels, query in tasks(features.test.features, episodes):
        prototypes, scores = _shifted_scores(support, labels, query, episodes.way)
        _, weights, places = augmented_weights(support, labels, scores, prototypes, options)
        joined = scores.gather(-2, places)[weights > 0]
        cosines.append(joined.mean())
    return float(torch.stack(cosines).mean())


def _shifted_scores(
    support: torch.Tensor, labels: torch.Tensor, query: torch.Tensor, ways: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Basic prototypes and the cosines of the shifted queries with them."""
    prototypes = basic_prototypes(support, labels, ways)
    shift = cross_class_shift(support, query)
    return prototypes, UnitRows.of(query).shifted_cosines(shift, prototypes)[1]
