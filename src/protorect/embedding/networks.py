"""The networks that come with the package: where from, on what terms, how good."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from protorect._utils.checkpoint import load_tensors
from protorect._utils.parallel import processors, threads
from protorect.backbones.efficientnet_lite_weights import PACKAGES, weights_file
from protorect.backbones.pretrained import pretrained_weights
from protorect.backbones.quantized import quantized_network
from protorect.backbones.registry import BACKBONES
from protorect.datasets.catalogue import DATASETS
from protorect.embedding.sources import COMBINATIONS, Embedder

RESEARCH_ONLY = "research only: trained on pictures that are for non-commercial research"
NO_LIMITS = "none but the license"
MEASURED = Path(__file__).with_name("measured.json")  # by `python -m benchmarks.networks`
MORE = """\
more networks:
  hf:facebook/dinov2-small           a vision model of Hugging Face, downloaded at the first use;
  hf:google/siglip-base-patch16-224  needs pip install 'protorect[hf]'. Larger models see more and
  hf:openai/clip-vit-base-patch32    take longer. Their terms are on their cards. A model with code
                                     of its own needs hf:NAME:trust_remote_code=true.
  onnx:PATH                          any ONNX file that maps pictures to numbers
  RUN                                the folder of a run of `protorect train`, or its weights
Options follow a name: with efficientnet-lite2:mirror=true, features are the mean of those of each
picture and of its mirror image."""


@dataclass(frozen=True)
class Network:
    """One network that comes with the package."""

    name: str
    summary: str
    source: str  # where the weights come from
    license: str
    terms: str
    files: tuple[Path, ...] = field(repr=False)

    @property
    def megabytes(self) -> float:
        """Size of the weights on disk."""
        return sum(file.stat().st_size for file in self.files) / 1e6


def _imagenet(name: str) -> Network:
    return Network(
        name,
        BACKBONES[name].summary,
        f"the package {PACKAGES[name]}",
        "Apache-2.0",
        NO_LIMITS,
        (weights_file(name), quantized_network(name)),
    )


def _combination(name: str) -> Network:
    parts = [_imagenet(part) for part in COMBINATIONS[name]]
    together = " and ".join(part.name for part in parts)
    files = tuple(file for part in parts for file in part.files)
    return Network(name, f"{together} side by side", together, "Apache-2.0", NO_LIMITS, files)


def _trained_here(name: str, path: Path) -> Network:
    _, card = load_tensors(path)
    dataset = DATASETS[card["data"]]
    terms = RESEARCH_ONLY if "non-commercial" in dataset.license else NO_LIMITS
    summary = f"{card['backbone']} trained on {dataset.name} by protorect"
    return Network(name, summary, "comes with protorect", "MIT", terms, (path,))


def networks() -> dict[str, Network]:
    """All networks of the package by name."""
    found = {name: _imagenet(name) for name in PACKAGES}
    found |= {name: _combination(name) for name in COMBINATIONS}
    return found | {n: _trained_here(n, path) for n, path in pretrained_weights().items()}


def measured() -> dict[str, Any]:
    """Accuracies and speeds of the networks, as they were measured for the documents."""
    return dict(json.loads(MEASURED.read_text("utf-8")))


def pictures_per_second(embedder: Embedder, seconds: float = 2.0) -> float:
    """The rate on decoded pictures, on all processors together, for about so many seconds."""
    block = max(4, embedder.block)
    shape = (block, embedder.size, embedder.size, embedder.channels)
    pictures = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    embedder(pictures)  # the first call also allocates
    end, workers = perf_counter() + seconds, processors()

    def work(_: int) -> int:
        count = 0
        while perf_counter() < end:
            embedder(pictures)
            count += block
        return count

    with threads(workers) as in_threads:
        start = perf_counter()
        total = sum(in_threads(work, range(workers)))
        return total / (perf_counter() - start)
