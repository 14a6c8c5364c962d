"""Pictures to features, from files: against its parts, beside a busy process, and its memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.machine import extra_bytes, in_new_process, seconds
from benchmarks.preparing import PictureCase, write_pictures
from protorect._utils.memory import keep_freed_memory
from protorect._utils.parallel import threads
from protorect.backbones.efficientnet_lite import EfficientNetLite
from protorect.backbones.export import PIXELS, export
from protorect.backbones.registry import build
from protorect.embedding.cache import FeatureCache
from protorect.embedding.pipeline import embed_pictures
from protorect.embedding.sources import DEFAULT_SOURCE, load_embedder
from protorect.embedding.sources.embedder import described
from protorect.images.decode import decode
from protorect.images.find import find_pictures
from protorect.report.table import Table


@dataclass(frozen=True)
class Work:
    """The amount of work that is measured."""

    pictures: int = 400  # JPEG files
    side: int = 350  # of a file, in pixels
    batch: int = 20  # of onnxruntime
    counts: tuple[int, int] = (200, 2000)  # of pictures whose memory is measured
    rounds: int = 5


SMALL = Work(4, 64, 2, (2, 4), rounds=1)
RATES = {
    "files": "files to features",
    "decoding": "decoding alone",
    "network": "the network alone, on decoded pictures",
    "together": "decoding and the network, from these two",
    "float32": "onnxruntime, the same network in float32, on decoded pictures",
    "lite0": "onnxruntime, efficientnet-lite0 in float32, on decoded pictures",
}
RATIOS = {
    "files of together": "files to features / decoding and the network",
    "files of float32": "files to features / the same network in float32",
    "network of lite0": "the network / efficientnet-lite0 in float32",
    "beside of alone": "files to features beside a busy process / without it",
}


def measure(small: bool = False) -> dict[str, Any]:
    """Rates and memory; the small version only shows that everything runs."""
    work = SMALL if small else Work()
    return measure_rates(work) | {
        "memory": [_memory_of_embedding(count, work) for count in work.counts]
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """Pictures to features against its parts, and its memory."""
    return {
        "embedding": Table(
            f"{measured['side']} x {measured['side']} JPEG files, {measured['network']}, "
            f"threads: {measured['cores']}; float32 with batches of {measured['batch']}.",
            ["what", "pictures/s"],
            [[text, f"{measured['rates'][key]:,.0f}"] for key, text in RATES.items()],
        ),
        "embedding-ratios": Table(
            "Medians of the ratios in each round.",
            ["ratio", "value"],
            [[text, f"{measured['ratios'][key]:.2f}"] for key, text in RATIOS.items()],
        ),
        "embedding-memory": Table(
            "Memory above that of Python with the network loaded.",
            ["pictures", "memory"],
            [
                [f"{one['pictures']:,}", f"{one['bytes'] / 1e6:.0f} MB"]
                for one in measured["memory"]
            ],
        ),
    }


def measure_rates(work: Work) -> dict[str, Any]:
    """Pictures per second from JPEG files to features, and of the parts of that work alone.

    All are measured one after the other in every round.
    """
    with TemporaryDirectory(prefix="protorect-") as scratch:
        folder = Path(scratch) / "pictures"
        _write(folder, work.pictures, work.side)
        pictures = find_pictures(folder).pictures
        embedder = load_embedder(device="cpu")
        pixels = [decode(one.read(), embedder.size, 3).pixels[None] for one in pictures]
        float32 = _float32_network(DEFAULT_SOURCE)
        smaller = _float32_network("efficientnet-lite0")
        small = [one[:, :224, :224] for one in pixels]
        works: dict[str, Callable[[], object]] = {
            "files": lambda: embed_pictures(pictures, embedder, FeatureCache(None)),
            "decoding": lambda: _in_threads(
                lambda one: decode(one.read(), embedder.size, 3), pictures
            ),
            "network": lambda: _in_threads(embedder, pixels),
            "float32": lambda: _run(float32, np.concatenate(pixels), work.batch),
            "lite0": lambda: _run(smaller, np.concatenate(small), work.batch),
        }
        rounds = [
            {name: work.pictures / seconds(one) for name, one in works.items()}
            for _ in range(work.rounds + 1)
        ][1:]  # the first also allocates
        rounds = [one | {"together": _together(one)} for one in rounds]
        beside = _beside_a_busy_process(works["files"], work)
    rates = {name: median(one[name] for one in rounds) for name in rounds[0]}
    ratios = {
        f"{name} of {other}": median(one[name] / one[other] for one in rounds)
        for name, other in (("files", "together"), ("files", "float32"), ("network", "lite0"))
    }
    return {
        "side": work.side,
        "batch": work.batch,
        "network": described(embedder),
        "cores": torch.get_num_threads(),
        "rates": rates,
        "ratios": ratios | {"beside of alone": beside},
    }


def _together(rates: Mapping[str, float]) -> float:
    """The rate of decoding and the network one after the other, on all cores."""
    return 1 / (1 / rates["decoding"] + 1 / rates["network"])


def _in_threads(work: Callable[[Any], object], items: Sequence[Any]) -> None:
    with threads(torch.get_num_threads()) as in_threads:
        for _ in in_threads(work, items):
            pass


def _float32_network(name: str) -> Any:
    """The network as onnxruntime runs it by default, with all cores on each layer."""
    import onnxruntime

    network = build(name)
    assert isinstance(network, EfficientNetLite)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(export(network), options, providers=providers)


def _run(session: Any, pixels: NDArray[np.uint8], batch: int) -> None:
    for start in range(0, len(pixels), batch):
        session.run(None, {PIXELS: np.ascontiguousarray(pixels[start : start + batch])})


def _beside_a_busy_process(work: Callable[[], object], amount: Work) -> float:
    """The rate beside a process that keeps one core busy, as a part of that without it."""
    ratios = []
    for _ in range(amount.rounds):
        alone = seconds(work)
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            ratios.append(alone / seconds(work))
        finally:
            busy.kill()
            busy.wait()
    return median(ratios)


def memory_of_embedding(folder: str) -> int:
    """Bytes above the network that embedding a folder needs, its features included."""
    keep_freed_memory()
    embedder = load_embedder(device="cpu")
    return extra_bytes(
        lambda: embed_pictures(find_pictures(folder).pictures, embedder, FeatureCache(None))
    )


def _memory_of_embedding(count: int, work: Work) -> dict[str, int]:
    with TemporaryDirectory(prefix="protorect-") as folder:
        _write(Path(folder), count, work.side)
        return {"pictures": count, "bytes": in_new_process(memory_of_embedding, folder)}


def _write(folder: Path, count: int, side: int) -> None:
    write_pictures(PictureCase("JPEG", side, 224, count, 1), folder)
