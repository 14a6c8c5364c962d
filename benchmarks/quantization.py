"""`python -m benchmarks.quantization GROCERIES CUB`: make the eight-bit EfficientNet-Lite networks.

GROCERIES is the archive or folder of the grocery photographs, CUB the packed data set of cropped
birds. Only every second class of the former and the training classes of the latter are used, so
that the others can judge the result. Of these pictures, one part gives the ranges of the maps, the
other chooses how: by the extremes, by percentiles or by the least squared error.

Writes src/protorect/backbones/quantized/NAME.int8.onnx and results/quantization.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.documents import RESULTS
from protorect._utils.files import atomic_write, write_text
from protorect.backbones.efficientnet_lite import EfficientNetLite
from protorect.backbones.export import (
    PIXELS,
    FoldedConv,
    Rounding,
    export,
    export_int8,
    folded_layers,
)
from protorect.backbones.quantized import quantized_network
from protorect.backbones.registry import build
from protorect.embedding.picture_sets import find_folders, open_packed
from protorect.embedding.sources import IMAGENET
from protorect.embedding.sources.embedder import fitted
from protorect.embedding.sources.session import open_session
from protorect.images.decode import decode

BIRDS = 50
SAMPLES = 8000  # values of each map, for each batch of pictures
BATCH = 5
PERCENTILE = 99.99
SHRINKING = np.linspace(0.3, 1, 36)  # of the extremes, tried for the least squared error
# Their maps are large and their values often small, as in dark pictures: rounded to bytes, they
# would cost most of the accuracy that is lost; computed in float32, they cost little time.
IN_FLOAT32 = ("stem", "blocks.0", "blocks.1")

Samples = Mapping[str, NDArray[np.float32]]


def main() -> None:
    """Make all networks, and record how."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groceries", type=Path)
    parser.add_argument("cub", type=Path)
    options = parser.parse_args()
    records = {}
    for name in IMAGENET:
        network = build(name)
        assert isinstance(network, EfficientNetLite)
        pictures = calibration_pictures(options.groceries, options.cub, network.size)
        model, records[name] = quantize(network, pictures[::2], pictures[1::2])
        with atomic_write(quantized_network(name)) as temporary:
            temporary.write_bytes(model)
        print(name, json.dumps(records[name]), flush=True)
    write_text(RESULTS / "quantization.json", json.dumps(records, indent=1) + "\n")


def calibration_pictures(groceries: Path, cub: Path, size: int) -> NDArray[np.uint8]:
    """Pictures that decide nothing but the ranges, (n, size, size, 3)."""
    with TemporaryDirectory() as scratch:
        found = find_folders(groceries, Path(scratch) / "pictures")
        stored = [found.pictures[i] for i in np.flatnonzero(found.labels % 2 == 0)[::2].tolist()]
        photographs = np.stack([decode(one.read(), size, 3).pixels for one in stored])
    birds = open_packed(cub, "train").pictures
    assert isinstance(birds, np.ndarray)
    return np.concatenate([photographs, fitted(birds[:: len(birds) // BIRDS][:BIRDS], size)])


def quantize(
    network: EfficientNetLite, calibration: NDArray[np.uint8], check: NDArray[np.uint8]
) -> tuple[bytes, dict[str, Any]]:
    """The network in eight-bit integers, and how similar its features are by each kind of range."""
    layers, samples = folded_layers(network), sampled_maps(network, calibration)
    expected = features(export(network), check)
    models = {kind: _model(network, layers, samples, of) for kind, of in RANGES.items()}
    cosines = {kind: cosine(features(model, check), expected) for kind, model in models.items()}
    best = max(cosines, key=lambda kind: float(cosines[kind].mean()))
    record = {
        "calibration": len(calibration),
        "check": len(check),
        "ranges": best,
        "bytes": len(models[best]),
        "cosine": {
            kind: {"mean": float(values.mean()), "least": float(values.min())}
            for kind, values in cosines.items()
        },
    }
    return models[best], record


@torch.inference_mode()
def sampled_maps(network: EfficientNetLite, pictures: NDArray[np.uint8]) -> Samples:
    """Values of every map that may be rounded: a random choice, and the two extremes."""
    generator, samples = torch.Generator().manual_seed(0), dict[str, list[Tensor]]()

    def record(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: object, output: Tensor) -> None:
            flat = output.flatten()
            chosen = flat[torch.randint(len(flat), (SAMPLES,), generator=generator)]
            samples.setdefault(name, []).extend([chosen, flat.aminmax().min[None]])
            samples[name].append(flat.aminmax().max[None])

        return hook

    sums = {f"blocks.{number}" for number, block in enumerate(network.blocks) if block.adds_input}
    names = [name for name in (*folded_layers(network), *sums) if not in_float32(name)]
    modules = dict(network.named_modules())
    hooks = [modules[name].register_forward_hook(record(name)) for name in names]
    assert network.preprocessing is not None
    for start in range(0, len(pictures), BATCH):
        pixels = torch.from_numpy(pictures[start : start + BATCH]).permute(0, 3, 1, 2) / 255
        network(network.preprocessing(pixels))
    for hook in hooks:
        hook.remove()
    return {name: torch.cat(values).numpy() for name, values in samples.items()}


def in_float32(name: str) -> bool:
    """Whether a layer or sum is not rounded."""
    return any(f"{name}.".startswith(f"{part}.") for part in IN_FLOAT32)


def extremes(values: NDArray[np.float32]) -> Rounding:
    """The whole range."""
    return Rounding.of_range(float(values.min()), float(values.max()))


def percentiles(values: NDArray[np.float32]) -> Rounding:
    """The range without the rarest values."""
    low, high = np.percentile(values, [100 - PERCENTILE, PERCENTILE])
    return Rounding.of_range(float(low), float(high))


def least_squares(values: NDArray[np.float32]) -> Rounding:
    """The range, shrunk to where the squared error of rounding and clipping is least."""
    low, high = float(values.min()), float(values.max())
    roundings = [Rounding.of_range(low * factor, high * factor) for factor in SHRINKING]
    return min(roundings, key=lambda rounding: rounding.squared_error(values))


RANGES = {"extremes": extremes, "percentiles": percentiles, "least squares": least_squares}


def features(model: bytes, pictures: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Features (n, dim) by onnxruntime."""
    session = open_session(model)
    return np.concatenate([session.run(None, {PIXELS: one[None]})[0] for one in pictures])


def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosine of the rows, (n,)."""
    return np.asarray((a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))


def _model(
    network: EfficientNetLite,
    layers: Mapping[str, FoldedConv],
    samples: Samples,
    rounding_of: Callable[[NDArray[np.float32]], Rounding],
) -> bytes:
    roundings = {name: rounding_of(values) for name, values in samples.items()}
    return export_int8(network, layers, roundings)


if __name__ == "__main__":
    main()
