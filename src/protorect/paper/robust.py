"""The robust test: queries of distractor classes among the queries (appendix of the paper).

Accuracy counts the queries that belong to one of the episode's classes. mAP is "computed from
top-15 confidently predicted data of each class": here, of the queries predicted as a class, the 15
with the highest softmax score over the classes are ranked, and the average precision is the mean of
the precision at each rank that holds a query of the class. The published mAP exceeds the published
accuracy. An average over all 15 queries of a class, with only those predicted as it ranked, could
not do so; hence the mean is over the ranked queries of the class.
"""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from protorect.core.functional import predictions, probabilities
from protorect.core.statistics import mean_interval
from protorect.evaluation.episodes import DISTRACTOR, Episodes
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.select_z import chosen_options
from protorect.evaluation.tasks import task_batches
from protorect.methods import Method, method
from protorect.paper.feature_sets import FeatureSet
from protorect.paper.measure import Job, Measured
from protorect.paper.published import SHOTS
from protorect.paper.record import Measurement
from protorect.paper.texts import QUANTITIES, feature_set_name, figure, system_name
from protorect.report.page import Element, Figure
from protorect.report.plots.accuracy import grouped_bars

TOP = 15


def robustness(job: Job) -> Measured:
    """Accuracy and mAP of each method in each setting, at 1 and 5 shots."""
    numbers, table = [], job.table
    choices = job.choose_z(job.settings[0])
    for setting in job.settings:
        episodes = job.sample_episodes(setting)
        for shot, name in product(SHOTS, job.methods):
            chosen = chosen_options(name, shot, choices)
            variant = method(name).with_options(**chosen)
            per_episode = _per_episode(variant, table, episodes.with_shot(shot))
            numbers += [
                setting.measurement(name, shot, *mean_interval(values), chosen, quantity)
                for quantity, values in per_episode.items()
            ]
    return numbers, {}


@torch.inference_mode()
def _per_episode(chosen: Method, table: FeatureTable, episodes: Episodes) -> dict[str, Tensor]:
    """Accuracy and mAP of each episode, (episodes,), in percent."""
    query_way = torch.from_numpy(episodes.query_way)
    accuracies, precisions = [], []
    for part, support, labels, query in task_batches(table, episodes):
        scores, truth = chosen(support, labels, query), query_way[part]
        in_class = (truth != DISTRACTOR).sum(dim=-1)
        accuracies.append((predictions(scores) == truth).sum(dim=-1) / in_class)
        precisions.append(mean_average_precision(scores, truth))
    return {"accuracy": 100 * torch.cat(accuracies), "map": 100 * torch.cat(precisions)}


def mean_average_precision(scores: Tensor, query_way: Tensor) -> Tensor:
    """Mean over the classes of the average precision of their `TOP` queries, (tasks,).

    `scores` are (tasks, n_query, ways), `query_way` (tasks, n_query): the class position of each
    query, or `DISTRACTOR`.
    """
    ways = torch.arange(scores.shape[-1])
    predicted = predictions(scores).unsqueeze(-1) == ways  # (tasks, n_query, ways)
    confidence = torch.where(predicted, probabilities(scores), -1.0)
    best, order = confidence.topk(min(TOP, scores.shape[-2]), dim=-2)  # (tasks, top, ways)
    hit = (query_way.unsqueeze(-1) == ways).gather(-2, order) & (best >= 0)
    ranks = torch.arange(1, best.shape[-2] + 1).unsqueeze(-1)
    precision = hit.cumsum(dim=-2) / ranks
    hits = hit.sum(dim=-2)  # (tasks, ways); a class without a hit has precision 0
    return ((precision * hit).sum(dim=-2) / hits.clamp(min=1)).mean(dim=-1)


def robust_figures(numbers: Sequence[Measurement], features: FeatureSet) -> list[Element]:
    """The robust test as bars: accuracy and mAP, for one feature set, with the paper's Z."""
    own = [one for one in numbers if one.feature_set == features.name and one.z is None]
    own.sort(key=lambda one: one.distractors)
    where = feature_set_name(features)
    return [[_robust(own, where, shot, name) for shot in SHOTS] for name in QUANTITIES]


def _robust(own: Sequence[Measurement], where: str, shot: int, quantity: str) -> Figure:
    chosen = [one for one in own if (one.shot, one.quantity) == (shot, quantity)]
    bars: dict[str, tuple[list[float], list[float]]] = {}
    for one in chosen:
        heights, ci95 = bars.setdefault(_bar_name(one.method), ([], []))
        heights.append(one.value)
        ci95.append(one.ci95 or 0.0)
    groups = dict.fromkeys(f"N' = {one.distractors}" for one in chosen)
    shown = QUANTITIES[quantity]
    values = "; ".join(
        f"{_bar_name(one.method)}, N' = {one.distractors}: {one.value:.1f} %" for one in chosen
    )
    svg = grouped_bars(list(groups), bars, f"{shown} in %", f"{where}, {shot}-shot: {shown}")
    return figure(svg, "robust", where=where, shot=shot, quantity=shown, values=values)


def _bar_name(method: str) -> str:
    """Name of a method; that Z = 8 stands in the caption."""
    return system_name(method).removesuffix(", Z = 8")
