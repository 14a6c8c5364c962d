"""BD-CSPN on episodes of several shapes, and on one very large episode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import protorect
from benchmarks.machine import (
    Machine,
    best_seconds,
    extra_bytes,
    in_new_process,
    measure_machine,
    seconds,
)
from benchmarks.plain_bd_cspn import plain_bd_cspn
from protorect.evaluation.evaluate import evaluate
from protorect.report.table import Table

QUERY = 15


@dataclass(frozen=True)
class Case:
    """BD-CSPN on many episodes of one shape, sampled from classes of equal size."""

    name: str
    episodes: int
    way: int
    shot: int
    dim: int
    classes: int
    each: int

    def features(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Random features around class centers, made without a second copy."""
        labels = np.repeat(np.arange(self.classes), self.each)
        generator = torch.Generator().manual_seed(0)
        centres = torch.randn(self.classes, self.dim, generator=generator) / 2
        rows = torch.empty(len(labels), self.dim).normal_(generator=generator)
        for centre, own in zip(centres, rows.split(self.each), strict=True):
            own += centre
        return rows.numpy(), labels

    @property
    def bytes_gathered(self) -> int:
        """Bytes of the rows of all episodes, once."""
        return self.episodes * self.way * (self.shot + QUERY) * self.dim * 4

    @property
    def operations(self) -> int:
        """Floating-point operations of BD-CSPN on all episodes."""
        return self.episodes * operations_of_an_episode(self.way, self.way * QUERY, self.dim)


CASES = (
    Case("5-way 1-shot, 640 dimensions", 10_000, 5, 1, 640, 20, 600),
    Case("20-way 5-shot, 640 dimensions", 1_000, 20, 5, 640, 40, 300),
    Case("1000-way 1-shot, 64 dimensions", 20, 1000, 1, 64, 1692, 20),
)
SMALL_CASES = (Case("2-way 1-shot, 8 dimensions", 3, 2, 1, 8, 3, 20),)
QUERIES, SMALL_QUERIES = 1_000_000, 1000


def measure(small: bool = False) -> dict[str, Any]:
    """All cases and the large episode; the small version only shows that everything runs."""
    if small:
        rates = partial(measure_machine, 1000, 16)
        cases = [measure_case(case, 1, rates) for case in SMALL_CASES]
        return {"cases": cases, "large_episode": measure_large_episode(SMALL_QUERIES, rates)}
    cases = [measure_case(case, 5, measure_machine) for case in CASES]
    return {"cases": cases, "large_episode": measure_large_episode(QUERIES, measure_machine)}


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """Speed against the limit of the machine and a plain implementation, and memory."""
    first, large = measured["cases"][0], measured["large_episode"]
    copied = first["copy_bytes_per_second"] / 1e9
    multiplied = first["product_operations_per_second"] / 1e9
    return {
        "episodes": Table(
            f"The machine copied {copied:.1f} GB/s and multiplied {multiplied:.0f} GFLOP/s in the "
            "rounds of the first row.",
            ["episodes", "episodes/s", "limit", "of the limit", "times plain", "memory"],
            [_row(case) for case in measured["cases"]],
        ),
        "large-episode": Table(
            "One episode of 5 classes, `BDCSPN().fit(X, y, X_unlabeled=...)`.",
            ["queries", "features", "seconds", "of the limit", "memory"],
            [
                [
                    f"{large['queries']:,}",
                    f"{large['feature_bytes'] / 1e9:.2f} GB",
                    f"{large['seconds']:.1f}",
                    f"{large['fraction_of_limit']:.2f}",
                    f"{large['memory_above_features'] / 1e6:.0f} MB",
                ]
            ],
        ),
    }


def _row(measured: dict[str, Any]) -> list[str]:
    case = Case(**{field.name: measured[field.name] for field in fields(Case)})
    machine = Machine(measured["copy_bytes_per_second"], measured["product_operations_per_second"])
    speed = measured["episodes_per_second"]
    limit = case.episodes / machine.least_seconds(case.bytes_gathered, case.operations)
    return [
        f"{case.episodes:,} x {case.name}",
        f"{speed:,.0f}",
        f"{limit:,.0f}",
        f"{speed / limit:.2f}",
        f"{measured['times_plain']:.1f}",
        f"{measured['memory_above_features'] / 1e6:.0f} MB",
    ]


def operations_of_an_episode(way: int, n_query: int, dim: int) -> int:
    """Floating-point operations of BD-CSPN, two per multiplication and addition.

    Scores, rectified prototypes and scores again for each class; the mean of the queries and
    their product with the shift once.
    """
    return 2 * n_query * dim * (3 * way + 2)


def measure_case(case: Case, n_rounds: int, rates: Callable[[], Machine]) -> dict[str, Any]:
    """Sampling, gathering and classifying, against the machine's rates of the same round."""
    features, labels = case.features()
    shape = {"way": case.way, "shot": case.shot, "query": QUERY, "episodes": case.episodes}

    def library() -> None:
        evaluate(features, labels, ["bd-cspn"], **shape)

    def plain() -> None:
        with torch.inference_mode():
            chunk = max(1, 800 // (case.way * (case.shot + QUERY)))  # the fastest of several
            plain_bd_cspn(table, protorect.sample_episodes(labels, **shape), chunk)

    table = torch.from_numpy(features)
    library()
    plain()
    rounds = []
    for _ in range(n_rounds):
        machine = rates()
        spent, spent_by_plain = seconds(library), seconds(plain)
        limit = machine.least_seconds(case.bytes_gathered, case.operations)
        rounds.append((limit / spent, spent_by_plain / spent, case.episodes / spent, machine))
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


def measure_large_episode(queries: int, rates: Callable[[], Machine]) -> dict[str, Any]:
    """One episode of 5 classes, by the estimator."""
    features, support, classes = _large_episode(queries)
    spent = best_seconds(
        lambda: protorect.BDCSPN().fit(support, classes, X_unlabeled=features), attempts=3
    )
    limit = rates().least_seconds(
        features.nbytes, operations_of_an_episode(5, queries, features.shape[1])
    )
    return {
        "queries": queries,
        "seconds": spent,
        "fraction_of_limit": limit / spent,
        "feature_bytes": features.nbytes,
        "memory_above_features": in_new_process(memory_of_large_episode, queries),
    }


def memory_of_large_episode(queries: int) -> int:
    """Bytes above the features that fitting needs."""
    features, support, classes = _large_episode(queries)
    protorect.BDCSPN().fit(support, classes, X_unlabeled=features[:1000])  # loads what it needs
    return extra_bytes(lambda: protorect.BDCSPN().fit(support, classes, X_unlabeled=features))


def _large_episode(
    queries: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    features, labels = Case("large episode", 1, 5, 5, 640, 5, queries // 5).features()
    return features, features[:: queries // 25].copy(), labels[:: queries // 25]
