"""Figures 2 and 3 of the paper and the bias of the prototypes: their data and their plots."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain, product
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from torch import Tensor

from protorect._utils.progress import Progress
from protorect.core.functional import Options, Weighting, basic_prototypes, normalize, rectify
from protorect.core.theory import accuracy_coefficient, class_moments, expected_accuracy
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.result import Result
from protorect.evaluation.tasks import TaskBatch, task_batches
from protorect.methods import method
from protorect.paper.feature_sets import FeatureSet
from protorect.paper.measure import QUERY, Job, Measured
from protorect.paper.published import SHOTS
from protorect.paper.texts import WEIGHTING_NAMES, feature_set_name, figure, prose
from protorect.report.page import Element
from protorect.report.plots.accuracy import Curve, accuracy_against_z, accuracy_limits
from protorect.report.plots.episodes import bias_by_class, prototypes_in_episode, queries_shifted

WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
Z = tuple(range(QUERY + 1))
SHOWN_CLASSES = 200  # in the plot of the bias: more dots would hide each other

ByShot = dict[tuple[str, int], Result]  # by name of the method and shot
Curves = dict[tuple[Weighting, int], list[Result]]  # by weighting of eq. (6) and shot


def figure_data(job: Job) -> Measured:
    """Accuracy against Z, two projections of an episode, and the bias of the prototypes.

    The projected episode is the one whose accuracies are nearest to the means of the methods.
    """
    (setting,) = job.settings
    table, episodes = job.table, job.sample_episodes(setting)
    features, labels = job.test.features, job.test.labels
    results, _, against_z = accuracy_over_z(features, labels, job.methods, episodes, job.progress)
    one_shot_results = [results[name, 1] for name in job.methods]
    distances = sum(np.square(one.per_episode - one.accuracy) for one in one_shot_results)
    number = int(np.argmin(distances))
    one_shot = episodes.with_shot(1)
    rows = (one_shot.support, one_shot.query, one_shot.query_way)
    (task,) = task_batches(table, Episodes(*(array[number, None] for array in rows)))
    query_way = torch.from_numpy(one_shot.query_way[number])
    shown = {"number": number, "query_way": query_way.tolist()}
    points = _episode_points(task, query_way)
    return [], {
        "episodes": setting.episodes,
        "against_z": against_z,
        **{name: shown | _projected(parts, job.seed) for name, parts in points.items()},
        "bias": {str(k): _bias_data(table, episodes.with_shot(k), job.seed) for k in SHOTS},
    }


def sweep(
    table: FeatureTable,
    methods: Sequence[str],
    variants: tuple[str, Sequence[float]],
    episodes: Episodes,
    progress: Progress | None = None,
) -> tuple[ByShot, Curves]:
    """Evaluate methods, and one over the values of an option with both weightings.

    `variants` is its spelling up to the value, such as "bd-i:z=", and the values. Each curve has
    one result per value.
    """
    spelling, values = variants
    names = {w: [f"{spelling}{value},weighting={w}" for value in values] for w in WEIGHTINGS}
    every = [*methods, *chain(*names.values())]
    results = evaluate(table, None, every, shot=SHOTS, episodes=episodes, progress=progress)
    by_name = {(one.method, one.shot): one for one in results}
    curves = {(w, k): [by_name[name, k] for name in names[w]] for w in WEIGHTINGS for k in SHOTS}
    return {key: one for key, one in by_name.items() if key[0] in methods}, curves


def accuracy_over_z(
    features: NDArray[Any],
    labels: NDArray[Any],
    methods: Sequence[str],
    episodes: Episodes,
    progress: Progress | None = None,
) -> tuple[ByShot, Curves, dict[str, Any]]:
    """Evaluate methods, CSPN among them, and BD_i-CSPN for every Z; return the data of Fig. 2, too.

    The data includes the accuracy that eq. (25) expects, with one coefficient fitted to the 1-shot
    and the 5-shot accuracy of CSPN, as in the paper, and with one for each shot.
    """
    table = FeatureTable.of(features, labels)
    results, curves = sweep(table, methods, ("bd-i:z=", Z), episodes, progress)
    moments = class_moments(features, labels)
    cspn = {k: results["cspn", k].accuracy for k in SHOTS}
    eta = accuracy_coefficient(moments, cspn)
    own = {k: accuracy_coefficient(moments, {k: cspn[k]}) for k in SHOTS}
    theory = {k: expected_accuracy(moments, eta, k, Z).tolist() for k in SHOTS}
    own_theory = {k: expected_accuracy(moments, own[k], k, Z).tolist() for k in SHOTS}
    by_shot = {"expected": theory, "eta_by_shot": own, "expected_by_shot": own_theory}
    by_shot |= {w: {k: accuracy_data(curves[w, k]) for k in SHOTS} for w in WEIGHTINGS}
    data = {name: {str(k): one[k] for k in SHOTS} for name, one in by_shot.items()}
    return results, curves, {"z": list(Z), **asdict(moments), "eta": eta, **data}


def accuracy_data(results: Sequence[Result]) -> dict[str, list[float]]:
    """Accuracies and the half-widths of their intervals."""
    return {name: [getattr(one, name) for one in results] for name in ("accuracy", "ci95")}


@torch.inference_mode()
def _episode_points(task: TaskBatch, query_way: Tensor) -> dict[str, dict[str, Tensor]]:
    """Prototypes of one task, and its queries before and after the shift, each (n, dim).

    The expected prototype is the mean of all samples of a class in the episode, as in the paper.
    """
    support, query = task.support.materialize()[0], task.query.materialize()[0]
    ways = int(task.labels.max()) + 1
    options = method("bd-i:weighting=classes").options
    samples, classes = torch.cat([support, query]), torch.cat([task.labels, query_way])
    prototypes = {
        "query": query,
        "basic": basic_prototypes(task.support, task.labels, ways)[0],
        "rectified": rectify(task.support, task.labels, task.query, ways, options).prototypes[0],
        "expected": torch.stack([samples[classes == way].mean(dim=0) for way in range(ways)]),
    }
    shifted = normalize(query + support.mean(dim=0) - query.mean(dim=0))  # eq. (8)
    means = torch.stack([part.mean(dim=0) for part in (support, query, shifted)])
    shift = {"support": support, "before": query, "after": shifted, "centres": means}
    return {"episode": prototypes, "shift": shift}


def _projected(parts: dict[str, Tensor], seed: int) -> dict[str, Any]:
    """All parts in one t-SNE projection, each (n, 2)."""
    points = normalize(torch.cat(list(parts.values()))).double().numpy()
    perplexity = min(30.0, (len(points) - 1) / 3)
    projected = TSNE(init="pca", perplexity=perplexity, random_state=seed).fit_transform(points)
    ends = np.cumsum([len(part) for part in parts.values()])[:-1]
    split = np.split(projected.astype(float), ends)
    return {name: part.tolist() for name, part in zip(parts, split, strict=True)}


@torch.inference_mode()
def _bias_data(table: FeatureTable, episodes: Episodes, seed: int) -> dict[str, Any]:
    """Angles in degrees from prototypes to the mean of all samples of their class.

    One value per class, the mean over its episodes; "drawn" has those of `SHOWN_CLASSES` classes.
    """
    names, numbers = np.unique(table.labels, return_inverse=True)
    class_of_row = torch.from_numpy(numbers)
    rows = normalize(table.rows.float())
    sums = torch.zeros(len(names), rows.shape[1]).index_add_(0, class_of_row, rows)
    expected = normalize(sums)  # (classes, dim)
    classes = class_of_row[torch.from_numpy(episodes.support[:, :, 0])]  # (episodes, way)
    kinds: dict[str, Options] = {"basic": method("cspn").options}
    kinds |= {name: method(f"bd-i:weighting={name}").options for name in WEIGHTINGS}
    totals = torch.zeros(len(kinds), len(names), dtype=torch.float64)
    for part, support, labels, query in task_batches(table, episodes):
        for row, options in enumerate(kinds.values()):
            prototypes = rectify(support, labels, query, episodes.way, options).prototypes
            cosine = (normalize(prototypes) * expected[classes[part]]).sum(dim=-1)
            angle = torch.rad2deg(torch.arccos(cosine.clamp(-1, 1))).double()
            totals[row].index_add_(0, classes[part].flatten(), angle.flatten())
    counts = torch.bincount(classes.flatten(), minlength=len(names))
    sampled = counts.nonzero().flatten()
    angles = dict(zip(kinds, (totals[:, sampled] / counts[sampled]).numpy(), strict=True))
    shown = np.sort(np.random.default_rng(seed).permutation(len(sampled))[:SHOWN_CLASSES])
    return {
        "classes": len(sampled),
        "mean": {kind: float(values.mean()) for kind, values in angles.items()},
        "nearer": {kind: float((angles[kind] < angles["basic"]).mean()) for kind in WEIGHTINGS},
        "drawn": {kind: values[shown].tolist() for kind, values in angles.items()},
    }


def paper_figures(data: Mapping[str, Any], features: FeatureSet) -> list[Element]:
    """Figures 2 and 3 of the paper and the bias of the prototypes, for one feature set."""
    where, episode, shift = feature_set_name(features), dict(data["episode"]), dict(data["shift"])
    numbers = {"number": episode.pop("number") + 1, "episodes": data["episodes"]}
    del shift["number"]  # that of the same episode
    prototypes = prototypes_in_episode(**episode, title=f"{where}: prototypes")
    shifted = queries_shifted(**shift, title=f"{where}: the shift")
    bias_figures, bias_texts = [], []
    for shot in SHOTS:
        bias, shown = data["bias"][str(shot)], data["bias"][str(shot)]["drawn"]
        rectified = {name: shown[weighting] for weighting, name in WEIGHTING_NAMES.items()}
        svg = bias_by_class(shown["basic"], rectified, f"{where}: bias at {shot}-shot")
        values = {"where": where, "shot": shot, "shown": len(shown["basic"])}
        bias_figures.append(figure(svg, "bias", **values, **bias))
        nearer = {weighting: 100 * share for weighting, share in bias["nearer"].items()}
        bias_texts.append(prose("bias", shot=shot, mean=bias["mean"], nearer=nearer))
    return [
        *against_z(data["against_z"], where),
        [
            figure(prototypes, "episode", where=where, **numbers),
            figure(shifted, "shift", where=where),
        ],
        bias_figures,
        " ".join(bias_texts),
    ]


def against_z(data: Mapping[str, Any], where: str) -> list[Element]:
    """Accuracy of BD_i-CSPN against Z, one figure per weighting, and what the theory assumes."""
    curves: dict[str, list[Curve]] = {weighting: [] for weighting in WEIGHTING_NAMES}
    texts: dict[str, list[str]] = {weighting: [] for weighting in WEIGHTING_NAMES}
    for weighting, k in product(WEIGHTING_NAMES, map(str, SHOTS)):
        accuracy, ci95 = data[weighting][k]["accuracy"], data[weighting][k]["ci95"]
        theories = data["expected"][k], data["expected_by_shot"][k]
        curve = Curve(f"{k}-shot", data["z"], accuracy, ci95, *theories)
        curves[weighting].append(curve)
        best = {"best": max(accuracy), "best_z": data["z"][accuracy.index(max(accuracy))]}
        texts[weighting].append(prose("against Z curve", shot=k, start=accuracy[0], **best))
    limits = accuracy_limits(list(chain(*curves.values())))
    figures = []
    for weighting, name in WEIGHTING_NAMES.items():
        svg = accuracy_against_z(curves[weighting], f"{where}: {name}", limits)
        values = {"where": where, "weighting": name, "curves": " ".join(texts[weighting])}
        figures.append(figure(svg, "against Z", **values))
    return [figures, prose("theory", **data, own=list(data["eta_by_shot"].values()))]
