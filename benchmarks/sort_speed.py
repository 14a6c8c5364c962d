"""How fast a pile is sorted: pictures to features against onnxruntime, and features to labels."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.cases import Case
from benchmarks.lite0_onnx import write_lite0
from benchmarks.machine import extra_bytes, in_new_process, seconds
from protorect.labelling.cache import FeatureCache
from protorect.labelling.classification import classify
from protorect.labelling.embedders import load_embedder
from protorect.labelling.pictures import find_pictures
from protorect.labelling.reading import embed_pictures

ROUNDS = 5
PICTURES, SIDE = 512, 350
PILE, CLASSES, SHOTS, DIM = 100_000, 100, 5, 1280
BATCH = 64


def measure_sorting() -> dict[str, Any]:
    """Seconds to label 100,000 pictures of 100 classes once their features exist."""
    features, labels = _features()
    examples = np.arange(len(labels)).reshape(CLASSES, -1)[:, :SHOTS].ravel()
    support, known = features[examples].copy(), labels[examples]
    pile = features[: PILE // CLASSES * CLASSES]
    classify(support, known, pile[:1000])
    spent = [seconds(lambda: classify(support, known, pile)) for _ in range(ROUNDS)]
    return {
        "pictures": PILE,
        "classes": CLASSES,
        "seconds": median(spent),
        "memory_above_features": in_new_process(memory_of_sorting),
    }


def memory_of_sorting() -> int:
    """Bytes above the features that labelling them needs."""
    features, labels = _features()
    support, known = features[:: PILE // CLASSES].copy(), labels[:: PILE // CLASSES]
    classify(support, known, features[:1000])
    return extra_bytes(lambda: classify(support, known, features))


def measure_reading() -> dict[str, Any]:
    """Pictures a second from JPEG files to features, and of onnxruntime on decoded ones.

    onnxruntime runs the same network in float32 on all cores on a batch that lies in memory; each
    round measures both, one after the other.
    """
    import onnxruntime

    with tempfile.TemporaryDirectory(prefix="protorect-") as scratch:
        root = Path(scratch)
        _photographs(root / "pictures")
        write_lite0(root / "lite0.onnx")
        session = onnxruntime.InferenceSession(root / "lite0.onnx")
        pixels = np.random.default_rng(0).normal(size=(BATCH, 3, 224, 224)).astype(np.float32)
        pile = find_pictures(root / "pictures").pictures
        embedder = load_embedder()

        def ours() -> None:
            embed_pictures(pile, embedder, FeatureCache(None))

        def theirs() -> None:
            for _ in range(PICTURES // BATCH):
                session.run(None, {"pixels": pixels})

        ours()
        theirs()
        rounds = [(PICTURES / seconds(ours), PICTURES / seconds(theirs)) for _ in range(ROUNDS)]
    return {
        "pictures_per_second": median(mine for mine, _ in rounds),
        "onnxruntime_per_second": median(other for _, other in rounds),
        "ratio": median(mine / other for mine, other in rounds),
    }


def _features() -> tuple[np.ndarray[Any, np.dtype[np.float32]], np.ndarray[Any, Any]]:
    return Case("sorting", 1, CLASSES, SHOTS, DIM, CLASSES, PILE // CLASSES).features()


def _photographs(folder: Path) -> None:
    """JPEG files with the detail of photographs: smooth shapes under a little noise."""
    folder.mkdir()
    generator = torch.Generator().manual_seed(0)
    for number in range(PICTURES):
        coarse = torch.rand(1, 3, 12, 12, generator=generator)
        smooth = torch.nn.functional.interpolate(coarse, (SIDE, SIDE), mode="bicubic")[0]
        noisy = smooth + 0.04 * torch.randn(3, SIDE, SIDE, generator=generator)
        pixels = (255 * noisy.clamp(0, 1)).byte().permute(1, 2, 0).numpy()
        Image.fromarray(pixels).save(folder / f"{number:04}.jpg", quality=90)


if __name__ == "__main__":
    print(measure_sorting())
    print(measure_reading())
