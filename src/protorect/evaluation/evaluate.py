"""Accuracy of methods on episodes of a feature table, with confidence intervals."""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from numbers import Real
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from protorect._utils.parameters import check_positive
from protorect._utils.progress import Progress, part_of, parts_of
from protorect.core.functional import predictions
from protorect.errors import OptionError, naming
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.features import FeatureSource, FeatureTable, feature_table, mean_feature
from protorect.evaluation.fine_tuned import Pictures, evaluate_fine_tuned
from protorect.evaluation.own_method import Spec, resolve_methods
from protorect.evaluation.result import Result
from protorect.evaluation.sampling import sample_episodes
from protorect.evaluation.select_z import Choice, Z, chosen_options, has_free_z
from protorect.evaluation.tasks import task_batches
from protorect.methods import METHODS, Method, PictureMethod

StrPath = str | os.PathLike[str]
SHOTS = (1, 5)


def evaluate(
    features: FeatureSource,
    labels: ArrayLike | Tensor | None = None,
    methods: Spec | Iterable[Spec] = ("cspn", "bd-cspn"),
    *,
    way: int = 5,
    shot: int | Sequence[int] | None = None,
    query: int = 15,
    episodes: int | Episodes | StrPath = 600,
    seed: int = 0,
    dirichlet: float | None = None,
    distractors: int = 0,
    present: int | None = None,
    groups: ArrayLike | Tensor | None = None,
    base: ArrayLike | Tensor | StrPath | None = None,
    validation: FeatureSource | tuple[Any, ...] | None = None,
    network: StrPath | None = None,
    pictures: StrPath | Pictures | None = None,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Run every method on the same episodes.

    Parameters
    ----------
    features
        (n, dim), numpy or torch, floating point of any width; or the path of a .npz file or a
        feature store, which has its own labels and groups; or a `FeatureTable`.
    labels
        (n,), numbers or strings.
    methods
        Names, with or without options: "bd-cspn", "bd-cspn:z=4,epsilon=20"; "all" for all on
        features. Or own functions (support, labels, query, ways) -> scores: support (tasks, n, dim)
        and query (tasks, m, dim), raw float32, labels (tasks, n), scores (tasks, m, ways). Their
        names are spelled "FILE.py:function" or "package.module:function".
    shot
        One or several, which use the same classes and queries; 1 and 5 if not given, or the
        shot of given `Episodes`.
    way, query, seed, dirichlet, distractors, present, groups
        See `sample_episodes`; the first six are not used with given `Episodes`.
    episodes
        Number of episodes to sample, or `Episodes` that were sampled from these labels, or the
        path of a file of them.
    base
        Features of base classes (n, dim), or the path of a file of them: `simpleshot` and
        `laplacian-shot` subtract their mean.
    validation
        Features of validation classes, as `features` or as a tuple (features, labels): Z is chosen
        on episodes of them for each method and shot, unless the method's name sets it.
    network, pictures
        For methods that fine-tune the network: the run or weights, and the packed pictures, that
        `protorect extract` made the feature file from; or both together as `Pictures`.
    device
        Where to compute; by default where the features are.
    progress
        Called with the number of episodes done and the number of all.

    Returns
    -------
    list of Result
        Shot by shot, in the order of `methods`.

    Examples
    --------
    >>> import numpy as np, protorect
    >>> labels = np.arange(200) % 8
    >>> features = np.eye(8)[labels] + np.random.default_rng(0).normal(size=(200, 8)) / 20
    >>> results = protorect.evaluate(features, labels, ["cspn", "bd-cspn"], episodes=20)
    >>> [(result.method, result.shot, result.accuracy) for result in results]
    [('cspn', 1, 100.0), ('bd-cspn', 1, 100.0), ('cspn', 5, 100.0), ('bd-cspn', 5, 100.0)]
    """
    with_pictures = network is not None or pictures is not None
    resolved = resolve_methods(methods, with_pictures)
    if base is not None:
        resolved = _with_base_mean(resolved, base)
    on_features = [one for one in resolved if isinstance(one, Method)]
    on_pictures = [one for one in resolved if isinstance(one, PictureMethod)]
    if isinstance(episodes, str | os.PathLike):
        episodes = Episodes.load(episodes)
    shots = listed_shots(shot, episodes)
    table = FeatureTable.of(features, labels, device, groups)
    behind = _pictures(table, network, pictures)
    if behind is not None:
        for one in on_pictures:
            behind.network_for(one)  # before anything is computed
    if isinstance(episodes, Episodes):
        episodes.check_labels(table.labels)
        if table.groups is not None:
            episodes.check_groups(table.groups)
    else:
        episodes = sample_episodes(
            table.labels,
            way=way,
            shot=max(shots),
            query=query,
            episodes=episodes,
            seed=seed,
            dirichlet=dirichlet,
            distractors=distractors,
            present=present,
            groups=table.groups,
        )

    with naming("validation"):  # read even if it is not needed, so that a mistake is seen
        validation = None if validation is None else feature_table(validation, device)
    n = len(shots) * len(episodes)
    choosing = validation is not None and any(has_free_z(one) for one in on_features)
    parts = parts_of(progress, [n * choosing, n * bool(on_features), n * len(on_pictures)])
    choices: list[Choice] = []
    if validation is not None and choosing:
        with naming("validation"):
            choices = choose_z(
                validation,
                None,
                on_features,
                shot=shots,
                way=episodes.way,
                query=episodes.query_per_class,
                episodes=len(episodes),
                seed=seed,
                progress=parts[0],
            )
    results = evaluate_chosen(table, on_features, choices, shots, episodes, parts[1])
    if behind is not None:
        shared: dict[str, Any] = {"shot": shots, "episodes": episodes, "device": device}
        results += evaluate_fine_tuned(behind, on_pictures, **shared, progress=parts[2])
    by_key = {(one.method, one.shot): one for one in results}
    return [by_key[one.name, k] for k in shots for one in resolved]


def evaluate_chosen(
    table: FeatureTable,
    methods: Sequence[Method],
    choices: Sequence[Choice],
    shots: Sequence[int],
    episodes: Episodes,
    progress: Progress | None = None,
) -> list[Result]:
    """Results shot by shot, with the Z chosen for each method and shot."""
    results: list[Result] = []
    for i, k in enumerate(shots if methods else ()):
        part = part_of(progress, i * len(episodes), len(shots) * len(episodes))
        chosen = [chosen_options(one.name, k, choices) for one in methods]
        variants = [one.with_options(**z) for one, z in zip(methods, chosen, strict=True)]
        at_shot = _evaluate_shot(table, variants, episodes.with_shot(k), part)
        for one, method, z in zip(at_shot, methods, chosen, strict=True):
            results.append(replace(one, method=method.name, chosen=z))
    return results


def choose_z(
    features: FeatureSource,
    labels: ArrayLike | Tensor | None,
    methods: Spec | Iterable[Spec],
    *,
    shot: Sequence[int],
    way: int = 5,
    query: int = 15,
    **options: Any,
) -> list[Choice]:
    """Select the Z of every method that has a free one, at every shot, on validation episodes.

    Every Z up to the number of queries per class is tried, and None (no limit). `features` and
    `labels` are of validation classes; `options` are further arguments of `evaluate`.
    """
    resolved = resolve_methods(methods)
    free = [one for one in resolved if isinstance(one, Method) and has_free_z(one)]
    if not free:
        return []
    grid: list[Z] = [*range(query + 1), None]
    variants = [one.with_options(z=z) for one in free for z in grid]
    results = evaluate(features, labels, variants, shot=shot, way=way, query=query, **options)
    accuracies = np.array([result.accuracy for result in results])
    by_choice = zip(product(shot, free), accuracies.reshape(-1, len(grid)), strict=True)
    return [
        Choice(one.name, k, grid[accuracy.argmax()], accuracy)  # the first of equals
        for (k, one), accuracy in by_choice
    ]


def _pictures(
    table: FeatureTable, network: StrPath | None, pictures: StrPath | Pictures | None
) -> Pictures | None:
    """The network and the pictures that the features were made from, if they are given."""
    if isinstance(pictures, Pictures) or network is pictures is None:
        return pictures
    if network is None or pictures is None:
        raise OptionError(
            "network and pictures go together: the network that made the features, and the "
            "packed pictures they are of."
        )
    if table.path is None:
        raise OptionError(
            "network and pictures need the feature file that `protorect extract` made of them; "
            "give its path instead of features and labels."
        )
    return Pictures.behind(table.path, network, pictures)


def _with_base_mean(
    methods: Sequence[Method | PictureMethod], base: ArrayLike | Tensor | StrPath
) -> list[Method | PictureMethod]:
    """The methods; those with the option base_mean get the mean of the base classes."""
    if not any(hasattr(one.options, "base_mean") for one in methods):
        users = [name for name, one in METHODS.items() if hasattr(one.options, "base_mean")]
        raise OptionError(
            f"base is for {' and '.join(users)}; give one of them as a method, or leave base out."
        )
    mean = mean_feature(base)
    return [
        one.with_options(base_mean=mean) if hasattr(one.options, "base_mean") else one
        for one in methods
    ]


def listed_shots(shot: int | Sequence[int] | None, episodes: int | Episodes) -> list[int]:
    """One shot or several as a list; if none is given, that of the episodes or 1 and 5."""
    if shot is None:
        return [episodes.shot] if isinstance(episodes, Episodes) else list(SHOTS)
    shots: list[Any] = [shot] if isinstance(shot, Real) else list(cast("Sequence[int]", shot))
    for one in shots:
        check_positive("shot", one)
    if not shots:
        raise OptionError("no shot given; give at least one.")
    return [int(one) for one in shots]


@torch.inference_mode()
def _evaluate_shot(
    table: FeatureTable, methods: list[Method], episodes: Episodes, progress: Progress
) -> list[Result]:
    """Results of all methods on episodes of one shape."""
    predicted = np.empty((len(methods), *episodes.query.shape), dtype=np.int32)
    seconds = np.zeros(len(methods))
    for part, support, labels, query in task_batches(table, episodes):
        for i, chosen in enumerate(methods):
            start = time.perf_counter()
            predicted[i, part] = predictions(chosen(support, labels, query)).cpu().numpy()
            seconds[i] += time.perf_counter() - start
        progress(part.stop, len(episodes))
    return [
        Result.of(chosen.name, episodes, predicted[i], float(seconds[i]))
        for i, chosen in enumerate(methods)
    ]
