"""The numbers that the paper's figures, and one of our own, are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
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
from protorect.evaluation.evaluate import Result, evaluate
from protorect.methods import method
from protorect.paper.measure import QUERY, Findings, Setting, drawn
from protorect.paper.published import SHOTS
from protorect.paper.sources import FeatureFile, SourceFeatures
from protorect.paper.tasks import Tasks, tasks

Z = tuple(range(QUERY + 1))
READINGS: tuple[Weighting, ...] = get_args(Weighting)
DRAWN_CLASSES = 200  # of the bias plot: more dots would hide each other


def pictures(
    features: SourceFeatures,
    methods: Sequence[str],
    settings: Sequence[Setting],
    seed: int,
    progress: Progress | None,
) -> Findings:
    """Accuracy against Z, two projections of an episode, and the bias of the prototypes.

    `methods` are those on whose mean accuracy the episode that is drawn comes nearest.
    """
    (setting,) = settings
    test = features.test
    episodes = drawn(test, setting, seed)
    curves = {(reading, z): f"bd-i:z={z},weighting={reading}" for reading in READINGS for z in Z}
    asked = list(dict.fromkeys([*methods, "cspn", *curves.values()]))
    results = evaluate(
        test.features, test.labels, asked, shot=SHOTS, episodes=episodes, progress=progress
    )
    found = {(one.method, one.shot): one for one in results}
    number = _typical([found[name, 1] for name in methods])
    one_shot = episodes.with_shot(1)
    only = Episodes(
        *(a[number, None] for a in (one_shot.support, one_shot.query, one_shot.query_way))
    )
    (task,) = tasks(test.features, only)
    return Findings(
        drawings={
            "episodes": setting.episodes,
            "against_z": _against_z(test, found, curves),
            "episode": {"number": number, **_episode(task, only, seed)},
            "shift": {"number": number, **_shift(task, only, seed)},
            "bias": {str(shot): _bias(test, episodes.with_shot(shot), seed) for shot in SHOTS},
        }
    )


def _against_z(
    test: FeatureFile,
    found: dict[tuple[str, int], Result],
    curves: dict[tuple[Weighting, int], str],
) -> dict[str, Any]:
    moments = class_moments(test.features, test.labels)
    eta = accuracy_coefficient(moments, {k: found["cspn", k].accuracy for k in SHOTS})
    by_reading: dict[str, Any] = {}
    for reading in READINGS:
        by_reading[reading] = {}
        for shot in SHOTS:
            ordered = [found[curves[reading, z], shot] for z in Z]
            by_reading[reading][str(shot)] = {
                "accuracy": [one.accuracy for one in ordered],
                "ci95": [one.ci95 for one in ordered],
            }
    return {
        "z": list(Z),
        "variance": moments.variance,
        "expectation": moments.expectation,
        "eta": eta,
        "expected": {
            str(shot): expected_accuracy(moments, eta, shot, Z).tolist() for shot in SHOTS
        },
        **by_reading,
    }


def _only(episodes: Episodes, number: int) -> Episodes:
    one = slice(number, number + 1)
    return Episodes(episodes.support[one], episodes.query[one], episodes.query_way[one])


def _typical(results: Sequence[Result]) -> int:
    """The episode on which the accuracies are nearest to their means."""
    away = sum(np.square(one.per_episode - one.accuracy) for one in results)
    return int(np.argmin(away))


@torch.inference_mode()
def _episode(task: Tasks, episodes: Episodes, seed: int) -> dict[str, Any]:
    """Queries and prototypes of an episode in two dimensions.

    The expected prototype is the mean of all samples of a class in the episode, as in the paper.
    """
    ways, query = episodes.way, normalize(task.query)[0]
    basic = basic_prototypes(task.support, task.labels, ways)[0]
    options = method("bd-i:weighting=classes").options
    rectified = rectify(task.support, task.labels, task.query, ways, options).prototypes[0]
    query_way = torch.from_numpy(episodes.query_way[0])
    support = normalize(task.support)[0]
    own = [torch.cat([support[task.labels == n], query[query_way == n]]) for n in range(ways)]
    expected = torch.stack([samples.mean(dim=0) for samples in own])
    parts = {"query": query, "basic": basic, "rectified": rectified, "expected": expected}
    return {"query_way": query_way.tolist(), **_projected(parts, seed)}


@torch.inference_mode()
def _shift(task: Tasks, episodes: Episodes, seed: int) -> dict[str, Any]:
    """Support, queries before and after the shift, and their centres, in two dimensions."""
    support, query = normalize(task.support)[0], normalize(task.query)[0]
    shifted = normalize(query + support.mean(dim=0) - query.mean(dim=0))  # eq. (8)
    parts = {
        "support": support,
        "before": query,
        "after": shifted,
        "centres": torch.stack([part.mean(dim=0) for part in (support, query, shifted)]),
    }
    return {"query_way": episodes.query_way[0].tolist(), **_projected(parts, seed)}


def _projected(parts: dict[str, Tensor], seed: int) -> dict[str, Any]:
    """All parts in one t-SNE projection, each (n, 2)."""
    together = normalize(torch.cat(list(parts.values()))).double().numpy()
    places = TSNE(
        init="pca", perplexity=min(30.0, (len(together) - 1) / 3), random_state=seed
    ).fit_transform(together)
    ends = np.cumsum([len(part) for part in parts.values()])
    split: list[NDArray[Any]] = np.split(places.astype(float), ends[:-1])
    return {name: part.tolist() for name, part in zip(parts, split, strict=True)}


@torch.inference_mode()
def _bias(test: FeatureFile, episodes: Episodes, seed: int) -> dict[str, Any]:
    """Angles in degrees from prototypes to the expected one, the mean of all of a class.

    For each class the mean over its episodes; `drawn` are up to `DRAWN_CLASSES` of them.
    """
    names, numbers = np.unique(test.labels, return_inverse=True)
    owner = torch.from_numpy(numbers)
    unit = normalize(torch.from_numpy(test.features).float())
    sums = torch.zeros(len(names), unit.shape[1]).index_add_(0, owner, unit)
    expected = normalize(sums)  # (classes, dim)
    classes = owner[torch.from_numpy(episodes.support[:, :, 0])]  # (episodes, way)
    kinds: dict[str, Options | None] = {"basic": None}
    kinds |= {reading: method(f"bd-i:weighting={reading}").options for reading in READINGS}
    totals = torch.zeros(len(kinds), len(names), dtype=torch.float64)
    for part, support, labels, query in tasks(test.features, episodes):
        for row, options in enumerate(kinds.values()):
            if options is None:
                prototypes = basic_prototypes(support, labels, episodes.way)
            else:
                prototypes = rectify(support, labels, query, episodes.way, options).prototypes
            cosine = (normalize(prototypes) * expected[classes[part]]).sum(dim=-1)
            angle = torch.rad2deg(torch.arccos(cosine.clamp(-1, 1))).double()
            totals[row].index_add_(0, classes[part].flatten(), angle.flatten())
    counts = torch.bincount(classes.flatten(), minlength=len(names))
    seen = counts.nonzero().flatten()
    angles = (totals[:, seen] / counts[seen]).numpy()  # (kinds, classes seen)
    shown = np.random.default_rng(seed).permutation(len(seen))[:DRAWN_CLASSES]
    by_kind = dict(zip(kinds, angles, strict=True))
    return {
        "classes": len(seen),
        "mean": {kind: float(values.mean()) for kind, values in by_kind.items()},
        "nearer": {
            kind: float((values < by_kind["basic"]).mean())
            for kind, values in by_kind.items()
            if kind != "basic"
        },
        "drawn": {kind: values[np.sort(shown)].tolist() for kind, values in by_kind.items()},
    }
