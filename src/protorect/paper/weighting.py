"""The effect of eq. (6): both weightings over epsilon, and the weight of the support."""

import math
from collections.abc import Mapping
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
from protorect.paper.feature_sets import FeatureSet
from protorect.paper.figures import WEIGHTINGS, accuracy_data, sweep
from protorect.paper.measure import Job, Measured
from protorect.paper.published import SHOTS, Key, published_values
from protorect.paper.texts import WEIGHTING_NAMES, feature_set_name, figure, prose
from protorect.report.page import Element, Figure
from protorect.report.plots.accuracy import Curve, curves_on_log_axis
from protorect.report.results import difference_text
from protorect.report.table import Table

EPSILONS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0)
PRINTED_EPSILON = METHODS["bd-cspn"].options.epsilon


def weighting(job: Job) -> Measured:
    """Accuracy with each weighting and epsilon, its gain over CSPN, and the weight of the support.

    Z is the paper's 8 throughout, so that only the weights differ.
    """
    (setting,) = job.settings
    table, episodes = job.table, job.sample_episodes(setting)
    variants = ("bd-cspn:epsilon=", EPSILONS)
    results, curves = sweep(table, job.methods, variants, episodes, job.progress)
    shots: dict[str, Any] = {}
    for shot in SHOTS:
        cspn = results["cspn", shot]
        shares, cosine = _support_shares(table, episodes.with_shot(shot))
        shots[str(shot)] = {"cspn": cspn.accuracy, "cosine": cosine}
        for name in WEIGHTINGS:
            gains = [one.minus(cspn) for one in curves[name, shot]]
            shots[str(shot)][name] = {
                **accuracy_data(curves[name, shot]),
                "gain": [gain.mean for gain in gains],
                "gain_ci95": [gain.ci95 for gain in gains],
                "support_share": shares[name],
            }
    numbers = [setting.measured(one) for one in results.values()]
    return numbers, {"epsilon": list(EPSILONS), "shots": shots}


@torch.inference_mode()
def _support_shares(table: FeatureTable, episodes: Episodes) -> tuple[dict[str, Any], float]:
    """Weight of the labeled samples in the rectified prototypes, and cosine of the other samples.

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
    cosine = float(torch.cat(cosines).mean())
    return dict(zip(WEIGHTINGS, by_weighting.tolist(), strict=True)), cosine


def weighting_elements(study: Mapping[str, Any], features: FeatureSet) -> list[Element]:
    """Gain over CSPN by epsilon for one feature set: table, conclusion, one figure per shot."""
    where, one_shot = feature_set_name(features), study["shots"]["1"]
    at = study["epsilon"].index(PRINTED_EPSILON)
    key = Key(features.dataset, features.backbone, "bd-cspn")
    printed = {shot: published_values()[key, shot].mean for shot in SHOTS}
    plain = {shot: published_values().get((key._replace(system="cspn"), shot)) for shot in SHOTS}
    gains = {shot: printed[shot] - one.mean for shot, one in plain.items() if one}
    texts = [_gains_text(study, at, shot, printed[shot], gains.get(shot)) for shot in SHOTS]
    shares = {name: 100 * one_shot[name]["support_share"][at] for name in WEIGHTINGS}
    values = {"where": where, "shots": " ".join(texts), "cosine": one_shot["cosine"]}
    return [
        _gain_table(study, where, gains),
        prose("weights answer", **values, **shares),
        [_gain_figure(study, where, shot, gains.get(shot)) for shot in SHOTS],
    ]


def _gain_table(study: Mapping[str, Any], where: str, printed: Mapping[int, float]) -> Table:
    """Gain over CSPN by epsilon, shot and weighting, and the weight of the support at 1-shot."""
    curves = {(k, w): study["shots"][str(k)][w] for k in SHOTS for w in WEIGHTINGS}
    header = ["ε", *(f"{k}-shot gain, {WEIGHTING_NAMES[w]}" for k, w in curves)]
    header += [f"support's weight at 1-shot, {name}" for name in WEIGHTING_NAMES.values()]
    rows = []
    for i, epsilon in enumerate(study["epsilon"]):
        gains = [Estimate(one["gain"][i], one["gain_ci95"][i]) for one in curves.values()]
        shares = [f"{100 * curves[1, w]['support_share'][i]:.0f} %" for w in WEIGHTINGS]
        rows.append([f"{epsilon:g}", *map(difference_text, gains), *shares])
    if printed:
        published = [f"{printed[shot]:+.2f}" for shot, _ in curves]
        rows.append([f"published, ε = {PRINTED_EPSILON:g}", *published, "", ""])
    return Table(prose("weights caption", where=where), header, rows)


def _gains_text(
    study: Mapping[str, Any], at: int, shot: int, printed: float, printed_gain: float | None
) -> str:
    """The gain with both weightings at the paper's epsilon, and which is nearer to the paper's.

    The accuracies are compared where the paper prints none of CSPN, and therefore no gain.
    """
    curves = [study["shots"][str(shot)][name] for name in WEIGHTINGS]
    gains = [curve["gain"][at] for curve in curves]
    accuracies = [curve["accuracy"][at] for curve in curves]
    compared, target = (accuracies, printed) if printed_gain is None else (gains, printed_gain)
    distances = [abs(value - target) for value in compared]
    differ = abs(gains[0] - gains[1]) > math.hypot(*(curve["gain_ci95"][at] for curve in curves))
    nearer = list(WEIGHTING_NAMES.values())[distances.index(min(distances))]
    return prose(
        "weights at one shot" if printed_gain is not None else "weights without CSPN",
        shot=shot,
        epsilon=PRINTED_EPSILON,
        gains=gains,
        accuracies=accuracies,
        conclusion=f"{nearer} are nearer" if differ else "no clear difference",
        printed=printed,
        printed_gain=printed_gain,
    )


def _gain_figure(study: Mapping[str, Any], where: str, shot: int, printed: float | None) -> Figure:
    curves = study["shots"][str(shot)]
    lines = [
        Curve(label, study["epsilon"], curves[name]["gain"], curves[name]["gain_ci95"])
        for name, label in WEIGHTING_NAMES.items()
    ]
    labels, title = ("ε", "gain over CSPN in points"), f"{where}, {shot}-shot"
    level = None if printed is None else ("published", printed)
    svg = curves_on_log_axis(lines, labels, level, title)
    dashed = "" if printed is None else prose("weights figure, published")
    return figure(svg, "weights figure", where=where, shot=shot, dashed=dashed)
