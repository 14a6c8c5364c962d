"""What is measured: episodes of several shapes, and one very large pile."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import protorect
from benchmarks.machine import (
    best_seconds,
    extra_bytes,
    in_new_process,
    measure_machine,
    seconds,
)
from benchmarks.plain import plain_bd_cspn
from protorect.evaluation import evaluate

ROUNDS = 5
QUERY = 15


@dataclass(frozen=True)
class Case:
    """BD-CSPN on many episodes of one shape, drawn from classes of equal size."""

    name: str
    episodes: int
    way: int
    shot: int
    dim: int
    classes: int
    each: int

    def features(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Random features around class centres, made without a second copy."""
        labels = np.repeat(np.arange(self.classes), self.each)
        generator = torch.Generator().manual_seed(0)
        centres = torch.randn(self.classes, self.dim, generator=generator) / 2
        rows = torch.empty(len(labels), self.dim).normal_(generator=generator)
        for centre, own in zip(centres, rows.split(self.each), strict=True):
            own += centre
        return rows.numpy(), labels

    @property
    def bytes_gathered(self) -> int:
        """Of the rows of all episodes, once."""
        return self.episodes * self.way * (self.shot + QUERY) * self.dim * 4

    @property
    def operations(self) -> int:
        """Of BD-CSPN: see `operations_of_an_episode`."""
        return self.episodes * operations_of_an_episode(self.way, self.way * QUERY, self.dim)


CASES = (
    Case("5-way 1-shot, 640 dimensions", 10_000, 5, 1, 640, 20, 600),
    Case("20-way 5-shot, 640 dimensions", 1_000, 20, 5, 640, 40, 300),
    Case("1000-way 1-shot, 64 dimensions", 20, 1000, 1, 64, 1692, 20),
)
PILE = 1_000_000


def operations_of_an_episode(way: int, n_query: int, dim: int) -> int:
    """Two per multiplication and addition.

    Scores, rectified prototypes and scores again for each class; the mean of the queries and
    their product with the shift once.
    """
    return 2 * n_query * dim * (3 * way + 2)


def measure_case(case: Case) -> dict[str, Any]:
    """Sampling, gathering and classifying, against the machine's rates of the same round."""
    features, labels = case.features()
    shape = {"way": case.way, "shot": case.shot, "query": QUERY, "episodes": case.episodes}

    def ours() -> None:
        evaluate(features, labels, ["bd-cspn"], **shape)

    def plain() -> None:
        with torch.inference_mode():
            chunk = max(1, 800 // (case.way * (case.shot + QUERY)))  # the fastest of several
            plain_bd_cspn(table, protorect.sample_episodes(labels, **shape), chunk)

    table = torch.from_numpy(features)
    ours()
    plain()
    rounds = []
    for _ in range(ROUNDS):
        machine = measure_machine()
        spent, spent_plainly = seconds(ours), seconds(plain)
        limit = machine.least_seconds(case.bytes_gathered, case.operations)
        rounds.append((limit / spent, spent_plainly / spent, case.episodes / spent, machine))
    return {
        **asdict(case),
        "fraction_of_limit": median(r[0] for r in rounds),
        "times_plain": median(r[1] for r in rounds),
        "episodes_per_second": median(r[2] for r in rounds),
        "copy_bytes_per_second": median(r[3].copy for r in rounds),
        "product_operations_per_second": median(r[3].product for r in rounds),
        "memory_above_features": in_new_process(memory_of_case, case),
    }


def memory_of_case(case: Case) -> int:
    """Bytes above the features that all of its episodes need."""
    features, labels = case.features()
    shape = {"way": case.way, "shot": case.shot, "query": QUERY}
    evaluate(features[: 40 * case.each], labels[: 40 * case.each], ["bd-cspn"], way=2, episodes=1)
    return extra_bytes(
        lambda: evaluate(features, labels, ["bd-cspn"], **shape, episodes=case.episodes)
    )


def measure_pile() -> dict[str, Any]:
    """One episode of 5 classes x 1,000,000 queries, by the estimator."""
    features, support, classes = _pile()
    spent = best_seconds(
        lambda: protorect.BDCSPN().fit(support, classes, X_unlabeled=features), tries=3
    )
    limit = measure_machine().least_seconds(
        features.nbytes, operations_of_an_episode(5, PILE, features.shape[1])
    )
    return {
        "queries": PILE,
        "seconds": spent,
        "fraction_of_limit": limit / spent,
        "feature_bytes": features.nbytes,
        "memory_above_features": in_new_process(memory_of_pile),
    }


def memory_of_pile() -> int:
    """Bytes above the features that fitting the pile needs."""
    features, support, classes = _pile()
    protorect.BDCSPN().fit(support, classes, X_unlabeled=features[:1000])  # loads what it needs
    return extra_bytes(lambda: protorect.BDCSPN().fit(support, classes, X_unlabeled=features))


def _pile() -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    features, labels = Case("pile", 1, 5, 5, 640, 5, PILE // 5).features()
    return features, features[:: PILE // 25].copy(), labels[:: PILE // 25]
