"""The robust test: queries of foreign classes in the pile (appendix of the paper).

Accuracy is that of the queries which do belong to a class. mAP is "computed from top-15
confidently predicted data of each class": here, of the queries predicted as a class the 15 with
the highest softmax score over the classes are ranked, and the average precision is the mean of the
precision at each rank that holds a query of the class. The published mAP exceeds the published
accuracy, which an average over all 15 queries of the class could not do when only those predicted
as it are ranked: the queries that were found are what it is averaged over.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from protorect._utils.progress import Progress
from protorect.core.functional import predictions, probabilities
from protorect.core.statistics import mean_interval
from protorect.evaluation.episodes import DISTRACTOR, Episodes
from protorect.evaluation.select_z import with_choice
from protorect.methods import Method, method
from protorect.paper.measure import Findings, Setting, chosen_z, drawn, measured
from protorect.paper.published import SHOTS
from protorect.paper.sources import SourceFeatures
from protorect.paper.tasks import tasks

TOP = 15


def robustness(
    features: SourceFeatures,
    methods: Sequence[str],
    settings: Sequence[Setting],
    seed: int,
    progress: Progress | None,
) -> Findings:
    """Accuracy and mAP of each method in each setting, at 1 and 5 shots."""
    found = Findings()
    choices = chosen_z(features, methods, settings[0], seed, progress)
    for setting in settings:
        episodes = drawn(features.test, setting, seed)
        for shot in SHOTS:
            for name in methods:
                chosen = with_choice(method(name), shot, choices)
                values = _per_episode(chosen, features, episodes.with_shot(shot))
                for quantity, of_episodes in values.items():
                    estimate = mean_interval(of_episodes)
                    found.measured.append(
                        measured(setting, name, shot, *estimate, choices, quantity)
                    )
    return found


@torch.inference_mode()
def _per_episode(chosen: Method, features: SourceFeatures, episodes: Episodes) -> dict[str, Tensor]:
    """Accuracy and mAP of each episode, (episodes,), in percent."""
    truth = torch.from_numpy(episodes.query_way)
    right, precision = [], []
    for part, support, labels, query in tasks(features.test.features, episodes):
        scores = chosen(support, labels, query)
        known = truth[part] != DISTRACTOR
        right.append((predictions(scores) == truth[part]).sum(-1) / known.sum(-1))
        precision.append(mean_average_precision(scores, truth[part]))
    return {"accuracy": 100 * torch.cat(right), "map": 100 * torch.cat(precision)}


def mean_average_precision(scores: Tensor, query_way: Tensor, top: int = TOP) -> Tensor:
    """Mean over the classes of the average precision of their most confident queries, (tasks,).

    Parameters
    ----------
    scores
        (tasks, n_query, ways), cosines.
    query_way
        (tasks, n_query), the class position of each query, or `DISTRACTOR`.
    top
        How many queries of each class are ranked, of those predicted as it.
    """
    ways = torch.arange(scores.shape[-1])
    taken = predictions(scores).unsqueeze(-1) == ways  # (tasks, n_query, ways)
    confidence = torch.where(taken, probabilities(scores), -1.0)
    best, order = confidence.topk(min(top, scores.shape[-2]), dim=-2)  # (tasks, top, ways)
    hit = (query_way.unsqueeze(-1) == ways).gather(-2, order) & (best >= 0)
    ranks = torch.arange(1, best.shape[-2] + 1).unsqueeze(-1)
    precision = hit.cumsum(dim=-2) / ranks
    found = hit.sum(dim=-2)  # (tasks, ways); a class with no hit has precision 0
    return ((precision * hit).sum(dim=-2) / found.clamp(min=1)).mean(dim=-1)
