"""Every method on the same episodes, and four of them against one task at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.episodes import QUERY, Case, operations_of_an_episode
from benchmarks.machine import (
    Machine,
    compare,
    extra_bytes,
    in_new_process,
    measure_machine,
    seconds,
)
from benchmarks.plain import plain_bd_cspn
from benchmarks.plain_laplacian_shot import plain_laplacian_shot
from benchmarks.plain_pt_map import plain_pt_map
from benchmarks.plain_tim import plain_tim
from protorect.evaluation.episodes import Episodes, sample_episodes
from protorect.evaluation.evaluate import evaluate
from protorect.methods import METHODS

SHOTS = (1, 5)
ROUNDS = 5
STEPS = METHODS["tim"].options.iterations
TEXT = """\
Every method with its defaults on the same {episodes:,} episodes, {way}-way, {query} queries a \
class, {dim} dimensions, float32; memory is what 1-shot episodes take above the features. Reading \
the features, which all methods share, is in the time of all together and not in that of each.

| method | 1-shot episodes/s | 5-shot episodes/s | memory |
|---|---:|---:|---:|
{rows}
All of them at {shots} shots: {total:.0f} s.

**Against one task at a time.** *Plain* is the method as one would first write it in torch for one \
task (`benchmarks/plain*.py`), on 1-shot episodes drawn before, reading the features included; the \
two are measured in turn. *Arithmetic* and *memory* are the two times that the machine needs at \
least, as in the section above: the products with features that the method cannot do without at \
the rate of a large matrix product, and one copy of the features that the episodes gather. The \
longer of the two is the limit.

| method | episodes/s | plain | times plain | arithmetic | memory | of the limit |
|---|---:|---:|---:|---:|---:|---:|
{ratios}
- `bd-cspn` meets the memory: it is little arithmetic on features that are read once from memory \
and three times more from the outer cache.
- `laplacian-shot` meets the arithmetic, as the nearest queries need every query's product with \
every other. The rest goes to the search for the nearest in these products and to the rounds of \
softmax and votes.
- `tim` meets the arithmetic: two products with all samples for each of its thousand steps. So few \
tasks are worked on at a time that their samples stay in the inner cache of each core; small calls \
of torch, which are no longer for more tasks, take much of the rest.
- `pt-map` meets neither. Its prototypes are known by the samples' inner products, so the features \
are read once; what takes the time is the exponentials and logarithms of the transport, in float64.

The machine copied {copy:.1f} GB/s and multiplied {product:.0f} GFLOP/s.
"""
ROW = "| `{method}` | {one:,.0f} | {five:,.0f} | {memory:.0f} MB |\n"
RATIO = (
    "| `{method}` | {ours:,.0f} | {plain:,.0f} | {times:.1f} | {arithmetic:,.0f} µs | "
    "{memory:,.0f} µs | {fraction:.2f} |\n"
)
CASE = Case("methods", 1000, 5, 1, 640, 20, 600)
SMALL_CASE = Case("methods", 3, 2, 1, 8, 3, 25)


@dataclass(frozen=True)
class Ratio:
    """A method and its plain version.

    Parameters
    ----------
    method
        Its name.
    plain
        (features, episodes) -> predictions, one task after the other.
    episodes, plain_episodes
        How many each of the two is timed on.
    operations
        (way, samples, dim) -> floating-point operations of an episode, two per multiplication and
        addition, of the products with features.
    """

    method: str
    plain: Callable[[Tensor, Episodes], Tensor]
    episodes: int
    plain_episodes: int
    operations: Callable[[int, int, int], int]


def _plain_bd_cspn(features: Tensor, episodes: Episodes) -> Tensor:
    return plain_bd_cspn(features, episodes, chunk=1)


RATIOS = (
    Ratio(
        "bd-cspn",
        _plain_bd_cspn,
        1000,
        100,
        lambda way, n, dim: operations_of_an_episode(way, n - way, dim),
    ),
    Ratio("laplacian-shot", plain_laplacian_shot, 1000, 60, lambda way, n, dim: 2 * n * n * dim),
    Ratio("tim", plain_tim, 48, 1, lambda way, n, dim: STEPS * 2 * (2 * way * n * dim)),
    Ratio("pt-map", plain_pt_map, 500, 6, lambda way, n, dim: 2 * n * n * dim),
)


def measure(small: bool = False) -> dict[str, Any]:
    """All methods at both shots, their memory, and the ratios; the small version shows it runs."""
    case, names = (SMALL_CASE, ["pt-map"]) if small else (CASE, list(METHODS))
    machine = measure_machine(1000, 16) if small else measure_machine()
    features, labels = _features(case)
    shape = {"way": case.way, "shot": SHOTS, "query": QUERY}
    evaluate(features, labels, names, **shape, episodes=2)
    results = []
    total = seconds(
        lambda: results.extend(evaluate(features, labels, names, **shape, episodes=case.episodes))
    )
    rates = [len(result.per_episode) / result.seconds for result in results]
    ratios = [_ratio(one, case, machine, small) for one in RATIOS]
    methods = [
        {
            "method": name,
            "episodes_per_second": [rates[i], rates[i + len(names)]],
            "memory": in_new_process(memory_of_method, case, name),
        }
        for i, name in enumerate(names)
    ]
    return {
        **asdict(case),
        "seconds_of_all": total,
        "methods": methods,
        "ratios": ratios,
        "copy_bytes_per_second": machine.copy,
        "product_operations_per_second": machine.product,
    }


def text(figures: dict[str, Any]) -> str:
    """What the page says."""
    rows = "".join(
        ROW.format(
            method=one["method"],
            one=one["episodes_per_second"][0],
            five=one["episodes_per_second"][1],
            memory=one["memory"] / 1e6,
        )
        for one in figures["methods"]
    )
    ratios = "".join(
        RATIO.format(
            method=one["method"],
            ours=one["ours"],
            plain=one["plain"],
            times=one["times_plain"],
            arithmetic=1e6 * one["arithmetic_seconds"],
            memory=1e6 * one["memory_seconds"],
            fraction=one["fraction_of_limit"],
        )
        for one in figures["ratios"]
    )
    return TEXT.format(
        rows=rows,
        ratios=ratios,
        episodes=figures["episodes"],
        way=figures["way"],
        query=QUERY,
        dim=figures["dim"],
        shots=" and ".join(map(str, SHOTS)),
        total=figures["seconds_of_all"],
        copy=figures["copy_bytes_per_second"] / 1e9,
        product=figures["product_operations_per_second"] / 1e9,
    )


def memory_of_method(case: Case, name: str) -> int:
    """Bytes above the features that its episodes need; more episodes than a chunk take no more."""
    features, labels = _features(case)
    shape = {"way": case.way, "shot": case.shot, "query": QUERY}
    evaluate(features[: 2 * case.each], labels[: 2 * case.each], name, way=2, shot=1, episodes=1)
    return extra_bytes(
        lambda: evaluate(features, labels, name, **shape, episodes=min(case.episodes, 250))
    )


def _ratio(one: Ratio, case: Case, machine: Machine, small: bool) -> dict[str, Any]:
    features, labels = _features(case)
    table = torch.from_numpy(features)
    counts = (2, 1) if small else (one.episodes, one.plain_episodes)
    shape = {"way": case.way, "shot": case.shot, "query": QUERY}
    ours, plain = (sample_episodes(labels, **shape, episodes=count) for count in counts)

    def our_rate() -> float:
        return counts[0] / seconds(lambda: evaluate(features, labels, one.method, episodes=ours))

    def plain_rate() -> float:
        # Inference mode is not for what records gradients.
        with torch.inference_mode(one.plain is not plain_tim):
            return counts[1] / seconds(lambda: one.plain(table, plain))

    found = compare(our_rate, plain_rate, 1 if small else ROUNDS)
    samples = case.way * (case.shot + QUERY)
    arithmetic = one.operations(case.way, samples, case.dim) / machine.product
    memory = samples * case.dim * 4 / machine.copy
    return {
        "method": one.method,
        "ours": found["ours"],
        "plain": found["bare"],
        "times_plain": found["fraction"],
        "arithmetic_seconds": arithmetic,
        "memory_seconds": memory,
        "fraction_of_limit": max(arithmetic, memory) * found["ours"],
    }


def _features(case: Case) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Nowhere negative, as the plain PT-MAP wants them."""
    features, labels = case.features()
    return np.maximum(features, 0, out=features), labels
