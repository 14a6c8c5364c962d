"""How fast a pile is sorted: pictures to features against onnxruntime, and features to labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.episodes import Case
from benchmarks.machine import compare, extra_bytes, in_new_process, seconds
from benchmarks.preparing import PictureCase, write_pictures
from protorect._utils.memory import keep_freed_memory
from protorect.embedding.cache import FeatureCache
from protorect.embedding.pipeline import embed_pictures
from protorect.embedding.sources import load_embedder
from protorect.images.find import find_pictures
from protorect.uncertainty.classify import classify

TEXT = """\
**Pictures to features**, end to end: JPEG files of {side} x {side} pixels found, read, hashed, \
decoded, resized and shown to EfficientNet-Lite0 in float32, without the cache. *onnxruntime* runs \
the same network in float32 on as many threads, on batches of {batch} that are decoded, resized \
and in memory already.

| pictures/s | onnxruntime | of onnxruntime |
|---:|---:|---:|
| {ours:,.0f} | {bare:,.0f} | {fraction:.2f} |

Memory above that of Python with the network loaded: {few_memory:.0f} MB for {few:,} pictures and \
{many_memory:.0f} MB for {many:,}. A thread holds the pixels of a chunk of at most 20 pictures, \
their small maps, and the large maps of 4 of them; what grows are the features, 5 kB a picture, \
which lie in a file from a gigabyte up.

**Features to labels**: {pile:,} pictures of {classes} classes, {shots} examples each, \
{dim:,} dimensions, with `bd-cspn-plus` and the calibration: {seconds:.1f} s, \
{memory:.0f} MB above the features.

What makes it fast:

- A picture goes the whole way, from the file to the features, on one core, and each core has its \
own. A layer divided among cores makes them wait for each other some fifty times a batch.
- Batch norms are folded into the convolutions, which also pad and apply the ReLU6 \
(`backbones/folding.py`, `backbones/fusing.py`): each of these would be one more pass over maps \
that do not fit the inner cache.
- The first blocks, whose maps are large, see four pictures at a time, the others twenty.
- JPEG files of more than twice the wanted detail are decoded at a half, a quarter or an eighth.
"""


@dataclass(frozen=True)
class Work:
    """How much is measured.

    Parameters
    ----------
    pictures, side, batch
        JPEG files, their side in pixels, and how many onnxruntime gets together.
    counts
        Two numbers of pictures whose memory is measured.
    pile, classes, dim
        Of the features.
    rounds
        Of everything that is timed.
    """

    pictures: int = 400
    side: int = 350
    batch: int = 50
    counts: tuple[int, int] = (200, 2000)
    pile: int = 100_000
    classes: int = 100
    dim: int = 1280
    rounds: int = 5


SMALL = Work(4, 64, 2, (2, 4), pile=200, classes=5, dim=64, rounds=1)
SHOTS = 5


def measure(small: bool = False) -> dict[str, Any]:
    """Both halves; the small version only shows that everything runs."""
    work = SMALL if small else Work()
    return {
        "reading": measure_reading(work),
        "memory": [_memory_of_reading(count, work) for count in work.counts],
        "sorting": measure_sorting(work),
    }


def text(figures: dict[str, Any]) -> str:
    """What the page says."""
    few, many = figures["memory"]
    sorting = figures["sorting"]
    return TEXT.format(
        **figures["reading"],
        few=few["pictures"],
        few_memory=few["bytes"] / 1e6,
        many=many["pictures"],
        many_memory=many["bytes"] / 1e6,
        **{name: sorting[name] for name in ("pile", "classes", "shots", "dim", "seconds")},
        memory=sorting["bytes"] / 1e6,
    )


def measure_reading(work: Work) -> dict[str, Any]:
    """Pictures a second from JPEG files to features, and of onnxruntime on decoded ones."""
    import onnxruntime

    from benchmarks.lite0_onnx import write_lite0

    with TemporaryDirectory(prefix="protorect-") as scratch:
        root = Path(scratch)
        write_lite0(root / "lite0.onnx")
        session = onnxruntime.InferenceSession(root / "lite0.onnx")
        pixels = np.random.default_rng(0).normal(size=(work.batch, 3, 224, 224)).astype(np.float32)
        _write(root / "pictures", work.pictures, work.side)
        embedder = load_embedder(precision="float32")

        def ours() -> float:
            pile = find_pictures(root / "pictures").pictures
            return work.pictures / seconds(
                lambda: embed_pictures(pile, embedder, FeatureCache(None))
            )

        def theirs() -> float:
            batches = work.pictures // work.batch
            return work.pictures / seconds(
                lambda: [session.run(None, {"pixels": pixels}) for _ in range(batches)]
            )

        return {"side": work.side, "batch": work.batch} | compare(ours, theirs, work.rounds)


def measure_sorting(work: Work) -> dict[str, Any]:
    """Seconds to label a pile once its features exist."""
    support, known, pile = _features(work)
    classify(support, known, pile[:1000])
    spent = [seconds(lambda: classify(support, known, pile)) for _ in range(work.rounds)]
    return {
        "pile": work.pile,
        "classes": work.classes,
        "shots": SHOTS,
        "dim": work.dim,
        "seconds": median(spent),
        "bytes": in_new_process(memory_of_sorting, work),
    }


def memory_of_sorting(work: Work) -> int:
    """Bytes above the features that labelling them needs."""
    keep_freed_memory()
    support, known, pile = _features(work)
    classify(support, known, pile[:1000])
    return extra_bytes(lambda: classify(support, known, pile))


def memory_of_reading(folder: str) -> int:
    """Bytes above the network that reading a folder needs, its features included."""
    keep_freed_memory()
    embedder = load_embedder(precision="float32")
    return extra_bytes(
        lambda: embed_pictures(find_pictures(folder).pictures, embedder, FeatureCache(None))
    )


def _memory_of_reading(count: int, work: Work) -> dict[str, int]:
    with TemporaryDirectory(prefix="protorect-") as folder:
        _write(Path(folder), count, work.side)
        return {"pictures": count, "bytes": in_new_process(memory_of_reading, folder)}


def _write(folder: Path, count: int, side: int) -> None:
    write_pictures(PictureCase("JPEG", side, 224, count, 1), folder)


def _features(
    work: Work,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
    """Examples, their classes, and the pile, which holds the examples too."""
    each = work.pile // work.classes
    case = Case("sorting", 1, work.classes, SHOTS, work.dim, work.classes, each)
    features, labels = case.features()
    examples = np.arange(work.pile).reshape(work.classes, -1)[:, :SHOTS].ravel()
    return features[examples].copy(), labels[examples], features
