"""The data of the paper's figures, and of one of our own."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.manifold import TSNE
from torch import Tensor

from protorect.core.functional import Options, basic_prototypes, normalize, rectify
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.tasks import TaskBatch, task_batches
from protorect.methods import method
from protorect.paper.measure import QUERY, Job, Measurements
from protorect.paper.published import SHOTS
from protorect.paper.sweep import WEIGHTINGS, Sweep, Theory, sweep, theory, typical_episode

Z = tuple(range(QUERY + 1))
SHOWN_CLASSES = 200  # in the plot of the bias: more dots would hide each other


def figure_data(job: Job) -> Measurements:
    """Accuracy against Z, two projections of an episode, and the bias of the prototypes.

    The projected episode is the one whose accuracies are nearest to the means of the methods.
    """
    (setting,) = job.settings
    features, labels = job.test.features, job.test.labels
    episodes = job.sample_episodes(setting)
    over_z = sweep(features, labels, ("bd-i", "z", Z), job.methods, episodes, job.progress)
    table = FeatureTable.of(features, labels)
    number = typical_episode([over_z.others[name, 1] for name in job.methods])
    one_shot = episodes.with_shot(1)
    rows = (one_shot.support, one_shot.query, one_shot.query_way)
    (task,) = task_batches(table, Episodes(*(array[number, None] for array in rows)))
    query_way = one_shot.query_way[number]
    return Measurements(
        figure_data={
            "episodes": setting.episodes,
            "against_z": _against_z(over_z, theory(features, labels, over_z)),
            "episode": {
                "number": number,
                "query_way": query_way.tolist(),
                **_projected(prototypes_of(task, torch.from_numpy(query_way)), job.seed),
            },
            "shift": {
                "number": number,
                "query_way": query_way.tolist(),
                **_projected(_shifted(task), job.seed),
            },
            "bias": {str(k): _bias(table, episodes.with_shot(k), job.seed) for k in SHOTS},
        }
    )


def _against_z(over_z: Sweep, fitted: Theory) -> dict[str, Any]:
    curves: dict[str, Any] = {weighting: {} for weighting in WEIGHTINGS}
    for (weighting, shot), results in over_z.results.items():
        curves[weighting][str(shot)] = {
            "accuracy": [one.accuracy for one in results],
            "ci95": [one.ci95 for one in results],
        }
    return {
        "z": list(over_z.values),
        "variance": fitted.moments.variance,
        "expectation": fitted.moments.expectation,
        "eta": fitted.eta,
        "expected": {str(shot): curve.tolist() for shot, curve in fitted.expected.items()},
        **curves,
    }


@torch.inference_mode()
def prototypes_of(task: TaskBatch, query_way: Tensor) -> dict[str, Tensor]:
    """Queries and basic, rectified and expected prototypes of one task, each (n, dim).

    The expected prototype is the mean of all samples of a class in the episode, as in the paper.
    """
    support, query = task.support.materialize()[0], task.query.materialize()[0]
    ways = int(task.labels.max()) + 1
    options = method("bd-i:weighting=classes").options
    samples, classes = torch.cat([support, query]), torch.cat([task.labels, query_way])
    return {
        "query": query,
        "basic": basic_prototypes(task.support, task.labels, ways)[0],
        "rectified": rectify(task.support, task.labels, task.query, ways, options).prototypes[0],
        "expected": torch.stack([samples[classes == way].mean(dim=0) for way in range(ways)]),
    }


@torch.inference_mode()
def _shifted(task: TaskBatch) -> dict[str, Tensor]:
    """Support, queries before and after the shift, and their means, each (n, dim)."""
    support, query = task.support.materialize()[0], task.query.materialize()[0]
    shifted = normalize(query + support.mean(dim=0) - query.mean(dim=0))  # eq. (8)
    means = torch.stack([part.mean(dim=0) for part in (support, query, shifted)])
    return {"support": support, "before": query, "after": shifted, "centres": means}


def _projected(parts: dict[str, Tensor], seed: int) -> dict[str, Any]:
    """All parts in one t-SNE projection, each (n, 2)."""
    points = normalize(torch.cat(list(parts.values()))).double().numpy()
    perplexity = min(30.0, (len(points) - 1) / 3)
    projected = TSNE(init="pca", perplexity=perplexity, random_state=seed).fit_transform(points)
    ends = np.cumsum([len(part) for part in parts.values()])[:-1]
    split = np.split(projected.astype(float), ends)
    return {name: part.tolist() for name, part in zip(parts, split, strict=True)}


@torch.inference_mode()
def _bias(table: FeatureTable, episodes: Episodes, seed: int) -> dict[str, Any]:
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
