"""Every method on the same episodes, and four of them against plain implementations."""

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
from benchmarks.plain_bd_cspn import plain_bd_cspn
from benchmarks.plain_laplacian_shot import plain_laplacian_shot
from benchmarks.plain_pt_map import plain_pt_map
from benchmarks.plain_tim import plain_tim
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.sampling import sample_episodes
from protorect.methods import METHODS
from protorect.report.table import Table

SHOTS = (1, 5)
ROUNDS = 5
STEPS = METHODS["tim"].options.iterations
CASE = Case("methods", 1000, 5, 1, 640, 20, 600)
SMALL_CASE = Case("methods", 3, 2, 1, 8, 3, 25)


@dataclass(frozen=True)
class Ratio:
    """A method and its plain implementation, one task after the other."""

    method: str
    plain: Callable[[Tensor, Episodes], Tensor]  # (features, episodes) -> predictions
    episodes: int  # that the method is timed on
    plain_episodes: int
    operations: Callable[[int, int, int], int]  # (way, samples, dim) -> of an episode


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


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """Speed and memory of every method, and four of them against plain implementations."""
    return {
        "methods": Table(
            f"{measured['episodes']:,} episodes, {measured['way']}-way, {QUERY} queries per class, "
            f"{measured['dim']} dimensions. All methods at 1 and 5 shots together: "
            f"{measured['seconds_of_all']:.0f} s.",
            ["method", "1-shot episodes/s", "5-shot episodes/s", "memory"],
            [
                [
                    f"`{one['method']}`",
                    *(f"{speed:,.0f}" for speed in one["episodes_per_second"]),
                    f"{one['memory'] / 1e6:.0f} MB",
                ]
                for one in measured["methods"]
            ],
        ),
        "plain-methods": Table(
            f"The machine copied {measured['copy_bytes_per_second'] / 1e9:.1f} GB/s and multiplied "
            f"{measured['product_operations_per_second'] / 1e9:.0f} GFLOP/s.",
            [
                *("method", "episodes/s", "plain", "times plain"),
                *("arithmetic", "memory", "of the limit"),
            ],
            [_ratio_row(one) for one in measured["ratios"]],
        ),
    }


def _ratio_row(one: dict[str, Any]) -> list[str]:
    arithmetic, memory = one["arithmetic_seconds"], one["memory_seconds"]
    return [
        f"`{one['method']}`",
        *(
            f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
            for rate in (one["library"], one["plain"])
        ),
        f"{one['library'] / one['plain']:.1f}",
        f"{1e6 * arithmetic:,.1f} µs",
        f"{1e6 * memory:,.1f} µs",
        f"{max(arithmetic, memory) * one['library']:.2f}",
    ]


def memory_of_method(case: Case, name: str) -> int:
    """Bytes above the features that its episodes need; they grow no further after one batch."""
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
    tasks, plain_tasks = (sample_episodes(labels, **shape, episodes=count) for count in counts)

    def library_rate() -> float:
        return counts[0] / seconds(lambda: evaluate(features, labels, one.method, episodes=tasks))

    def plain_rate() -> float:
        with torch.inference_mode():
            return counts[1] / seconds(lambda: one.plain(table, plain_tasks))

    rates = compare(library_rate, plain_rate, 1 if small else ROUNDS)
    samples = case.way * (case.shot + QUERY)
    arithmetic = one.operations(case.way, samples, case.dim) / machine.product
    memory = samples * case.dim * 4 / machine.copy
    return {
        "method": one.method,
        "library": rates["library"],
        "plain": rates["bare"],
        "arithmetic_seconds": arithmetic,
        "memory_seconds": memory,
    }


def _features(case: Case) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Non-negative features, as the plain PT-MAP needs them."""
    features, labels = case.features()
    return np.maximum(features, 0, out=features), labels
