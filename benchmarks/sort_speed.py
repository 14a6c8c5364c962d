"""Speed of sorting: pictures to features against onnxruntime, and features to labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.episodes import Case
from benchmarks.machine import compare, extra_bytes, in_new_process, rates_and_ratio, seconds
from benchmarks.preparing import PictureCase, write_pictures
from protorect._utils.memory import keep_freed_memory
from protorect.embedding.cache import FeatureCache
from protorect.embedding.pipeline import embed_pictures
from protorect.embedding.sources import load_embedder
from protorect.images.find import find_pictures
from protorect.report.table import Table
from protorect.uncertainty.classify import classify


@dataclass(frozen=True)
class Work:
    """The amount of work that is measured."""

    pictures: int = 400  # JPEG files
    side: int = 350  # of a file, in pixels
    batch: int = 50  # of onnxruntime
    counts: tuple[int, int] = (200, 2000)  # of pictures whose memory is measured
    labelled: int = 100_000  # pictures whose features are classified
    classes: int = 100
    dim: int = 1280
    rounds: int = 5


SMALL = Work(4, 64, 2, (2, 4), labelled=200, classes=5, dim=64, rounds=1)
SHOTS = 5


def measure(small: bool = False) -> dict[str, Any]:
    """Both halves; the small version only shows that everything runs."""
    work = SMALL if small else Work()
    return {
        "embedding": measure_embedding(work),
        "memory": [_memory_of_embedding(count, work) for count in work.counts],
        "classification": measure_classification(work),
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """Pictures to features against onnxruntime, its memory, and features to labels."""
    embedding, labels = measured["embedding"], measured["classification"]
    return {
        "sort-embedding": Table(
            f"onnxruntime with batches of {embedding['batch']}.",
            ["JPEG files", "pictures/s", "onnxruntime", "of onnxruntime"],
            [[f"{embedding['side']} x {embedding['side']}", *rates_and_ratio(embedding)]],
        ),
        "sort-memory": Table(
            "Memory above that of Python with the network loaded.",
            ["pictures", "memory"],
            [
                [f"{one['pictures']:,}", f"{one['bytes'] / 1e6:.0f} MB"]
                for one in measured["memory"]
            ],
        ),
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


def measure_embedding(work: Work) -> dict[str, Any]:
    """Pictures per second from JPEG files to features, and of onnxruntime on decoded ones."""
    import onnxruntime

    from benchmarks.lite0_onnx import write_lite0

    with TemporaryDirectory(prefix="protorect-") as scratch:
        root = Path(scratch)
        write_lite0(root / "lite0.onnx")
        session = onnxruntime.InferenceSession(root / "lite0.onnx")
        pixels = np.random.default_rng(0).normal(size=(work.batch, 3, 224, 224)).astype(np.float32)
        _write(root / "pictures", work.pictures, work.side)
        embedder = load_embedder(precision="float32")

        def library() -> float:
            pictures = find_pictures(root / "pictures").pictures
            return work.pictures / seconds(
                lambda: embed_pictures(pictures, embedder, FeatureCache(None))
            )

        def onnx() -> float:
            batches = work.pictures // work.batch
            return work.pictures / seconds(
                lambda: [session.run(None, {"pixels": pixels}) for _ in range(batches)]
            )

        return {"side": work.side, "batch": work.batch} | compare(library, onnx, work.rounds)


def measure_classification(work: Work) -> dict[str, Any]:
    """Seconds to label pictures whose features exist."""
    support, known, features = _features(work)
    classify(support, known, features[:1000])
    spent = [seconds(lambda: classify(support, known, features)) for _ in range(work.rounds)]
    return {
        "pictures": work.labelled,
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


def memory_of_embedding(folder: str) -> int:
    """Bytes above the network that embedding a folder needs, its features included."""
    keep_freed_memory()
    embedder = load_embedder(precision="float32")
    return extra_bytes(
        lambda: embed_pictures(find_pictures(folder).pictures, embedder, FeatureCache(None))
    )


def _memory_of_embedding(count: int, work: Work) -> dict[str, int]:
    with TemporaryDirectory(prefix="protorect-") as folder:
        _write(Path(folder), count, work.side)
        return {"pictures": count, "bytes": in_new_process(memory_of_embedding, folder)}


def _write(folder: Path, count: int, side: int) -> None:
    write_pictures(PictureCase("JPEG", side, 224, count, 1), folder)


def _features(
    work: Work,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
    """Examples, their classes, and all pictures, the examples included."""
    each = work.labelled // work.classes
    case = Case("sorting", 1, work.classes, SHOTS, work.dim, work.classes, each)
    features, labels = case.features()
    examples = np.arange(work.labelled).reshape(work.classes, -1)[:, :SHOTS].ravel()
    return features[examples].copy(), labels[examples], features
