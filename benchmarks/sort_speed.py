"""Speed of sorting pictures whose features exist."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.episodes import Case
from benchmarks.machine import extra_bytes, in_new_process, seconds
from protorect._utils.memory import keep_freed_memory
from protorect.report.table import Table
from protorect.uncertainty.classify import classify


@dataclass(frozen=True)
class Work:
    """The amount of work that is measured."""

    labeled: int = 100_000  # pictures whose features are classified
    classes: int = 100
    dim: int = 1280
    rounds: int = 5


SMALL = Work(labeled=200, classes=5, dim=64, rounds=1)
SHOTS = 5


def measure(small: bool = False) -> dict[str, Any]:
    """All of it; the small version only shows that everything runs."""
    work = SMALL if small else Work()
    return {
        "classification": measure_classification(work),
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """Features to labels."""
    labels = measured["classification"]
    return {
        "sort-labels": Table(
            "Memory above the features.",
            ["pictures", "classes", "examples per class", "dimensions", "seconds", "memory"],
            [
                [
                    *(f"{labels[key]:,}" for key in ("pictures", "classes", "shots", "dim")),
                    f"{labels['seconds']:.1f}",
                    f"{labels['bytes'] / 1e6:.0f} MB",
                ]
            ],
        ),
    }


def measure_classification(work: Work) -> dict[str, Any]:
    """Seconds to label pictures whose features exist."""
    support, known, features = _features(work)
    classify(support, known, features[:1000])
    spent = [seconds(lambda: classify(support, known, features)) for _ in range(work.rounds)]
    return {
        "pictures": work.labeled,
        "classes": work.classes,
        "shots": SHOTS,
        "dim": work.dim,
        "seconds": median(spent),
        "bytes": in_new_process(memory_of_classification, work),
    }


def memory_of_classification(work: Work) -> int:
    """Bytes above the features that labelling them needs."""
    keep_freed_memory()
    support, known, features = _features(work)
    classify(support, known, features[:1000])
    return extra_bytes(lambda: classify(support, known, features))


def _features(
    work: Work,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
    """Examples, their classes, and all pictures, the examples included."""
    each = work.labeled // work.classes
    case = Case("sorting", 1, work.classes, SHOTS, work.dim, work.classes, each)
    features, labels = case.features()
    examples = np.arange(work.labeled).reshape(work.classes, -1)[:, :SHOTS].ravel()
    return features[examples].copy(), labels[examples], features
