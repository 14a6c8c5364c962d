"""BD-CSPN on episodes of several shapes, and on one very large pile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
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
from benchmarks.plain import plain_bd_cspn
from protorect.evaluation.evaluate import evaluate

QUERY = 15
TEXT = """\
BD-CSPN as printed, float32.

**The limit** of a case is the slower of two times: copying once the bytes that the episodes \
gather (at the rate at which this machine copies memory to memory) and doing the arithmetic of \
the method (at the rate of a 2048 x 2048 float32 matrix product). The copy rate counts a byte \
that is read and written once, as the gather does; were it counted twice, the fractions that \
copying limits would be half as large. Sampling the episodes is part \
of our time, not of the limit. *Plain* is BD-CSPN as one would first write it in torch, batched \
and written out (`benchmarks/plain.py`), on the same episodes in the chunks that suit it best.

| episodes | episodes/s | of the limit | times plain | memory above the features |
|---|---:|---:|---:|---:|
{rows}
One episode of 5 classes and {queries:,} queries of 640 dimensions ({size:.2f} GB), \
`BDCSPN().fit(X, y, X_unlabeled=...)`: {seconds:.1f} s, {fraction:.2f} of the limit, \
{memory:.0f} MB above the features.

The machine copied {copy:.1f} GB/s and multiplied {product:.0f} GFLOP/s in these rounds.

What holds it back:

- The rows of an episode are gathered once; their normalisation and the shift are folded into \
the products (`unitrows.py`), so no second copy of the queries is ever written.
- BD-CSPN reads the gathered queries four times (their mean, the scores with the shift, the \
rectified prototypes, the final scores). A chunk of some hundred episodes stays in the outer \
cache but not in the inner one: these passes run at the speed of the outer cache. Chunks that \
fit the inner cache would be faster if calls of torch cost nothing; there are some fifty small \
ones a chunk, and with few episodes in it they take longer than the passes they save.
- Many ways turn the cost from gathering to the score matrix. At 1000 ways it has 15 million \
entries an episode, written twice in memory that the system must map anew and read by the maxima.
- The estimator passes the pile through once more for `transduction_`, in the blocks that \
`predict` uses, so that both answer alike to the last bit.
"""
ROW = "| {episodes:,} x {name} | {speed:,.0f} | {fraction:.2f} | {plain:.1f} | {memory:.0f} MB |\n"


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
SMALL_CASES = (Case("2-way 1-shot, 8 dimensions", 3, 2, 1, 8, 3, 20),)
PILE, SMALL_PILE = 1_000_000, 1000


def measure(small: bool = False) -> dict[str, Any]:
    """All cases and the pile; the small version only shows that everything runs."""
    if small:
        rates = partial(measure_machine, 1000, 16)
        cases = [measure_case(case, 1, rates) for case in SMALL_CASES]
        return {"cases": cases, "pile": measure_pile(SMALL_PILE, rates)}
    cases = [measure_case(case, 5, measure_machine) for case in CASES]
    return {"cases": cases, "pile": measure_pile(PILE, measure_machine)}


def text(figures: dict[str, Any]) -> str:
    """What the page says."""
    rows = "".join(
        ROW.format(
            episodes=case["episodes"],
            name=case["name"],
            speed=case["episodes_per_second"],
            fraction=case["fraction_of_limit"],
            plain=case["times_plain"],
            memory=case["memory_above_features"] / 1e6,
        )
        for case in figures["cases"]
    )
    first, pile = figures["cases"][0], figures["pile"]
    return TEXT.format(
        rows=rows,
        queries=pile["queries"],
        size=pile["feature_bytes"] / 1e9,
        seconds=pile["seconds"],
        fraction=pile["fraction_of_limit"],
        memory=pile["memory_above_features"] / 1e6,
        copy=first["copy_bytes_per_second"] / 1e9,
        product=first["product_operations_per_second"] / 1e9,
    )


def operations_of_an_episode(way: int, n_query: int, dim: int) -> int:
    """Two per multiplication and addition.

    Scores, rectified prototypes and scores again for each class; the mean of the queries and
    their product with the shift once.
    """
    return 2 * n_query * dim * (3 * way + 2)


def measure_case(case: Case, n_rounds: int, rates: Callable[[], Machine]) -> dict[str, Any]:
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
    for _ in range(n_rounds):
        machine = rates()
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


def measure_pile(queries: int, rates: Callable[[], Machine]) -> dict[str, Any]:
    """One episode of 5 classes, by the estimator."""
    features, support, classes = _pile(queries)
    spent = best_seconds(
        lambda: protorect.BDCSPN().fit(support, classes, X_unlabeled=features), tries=3
    )
    limit = rates().least_seconds(
        features.nbytes, operations_of_an_episode(5, queries, features.shape[1])
    )
    return {
        "queries": queries,
        "seconds": spent,
        "fraction_of_limit": limit / spent,
        "feature_bytes": features.nbytes,
        "memory_above_features": in_new_process(memory_of_pile, queries),
    }


def memory_of_pile(queries: int) -> int:
    """Bytes above the features that fitting the pile needs."""
    features, support, classes = _pile(queries)
    protorect.BDCSPN().fit(support, classes, X_unlabeled=features[:1000])  # loads what it needs
    return extra_bytes(lambda: protorect.BDCSPN().fit(support, classes, X_unlabeled=features))


def _pile(queries: int) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    features, labels = Case("pile", 1, 5, 5, 640, 5, queries // 5).features()
    return features, features[:: queries // 25].copy(), labels[:: queries // 25]
