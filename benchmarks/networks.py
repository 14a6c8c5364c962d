"""`python -m benchmarks.networks --work DIR GROCERIES BIRDS SIGNS`: accuracy against speed.

GROCERIES is the archive of the grocery photographs; BIRDS (CUB, cropped) and SIGNS (traffic signs
of Meta-Dataset) are packed data sets, of whose test classes 20 pictures each are used. Features
are kept in DIR. The networks for photographs are measured in float32 and in int8.

Writes results/networks.json, docs/networks.md with its figure, and what `protorect networks` shows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.documents import DOCS, save_results
from benchmarks.networks_document import measured_text, plot
from protorect import evaluate
from protorect._utils.files import atomic_write, write_text
from protorect._utils.versions import versions
from protorect.backbones.weights import TrainedBackbone
from protorect.core.statistics import mean_interval
from protorect.embedding.cache import FeatureCache
from protorect.embedding.networks import MEASURED
from protorect.embedding.picture_sets import PictureSet, find_folders, open_packed
from protorect.embedding.pipeline import embed_at, embed_pictures
from protorect.embedding.sources import COMBINATIONS, IMAGENET, Embedder, load_embedder
from protorect.embedding.sources.torch_network import TorchEmbedder
from protorect.uncertainty.classify import DEFAULT_METHOD

PACKED = ("birds", "signs")
EACH = 20  # pictures of a class of these
MIRRORED = "efficientnet-lite2:mirror=true"  # in int8, on the first sets
WAY, QUERY, EPISODES, SHOTS = 10, 15, 300, (1, 5)
METHODS = (DEFAULT_METHOD, "cspn")
ROUNDS, PER_ROUND = 7, 1

Features = NDArray[np.float32]


def main() -> None:
    """Embed, evaluate, measure the speed, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    for name in ("groceries", *PACKED):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    options.work.mkdir(exist_ok=True)
    accuracy: dict[str, Any] = {}
    for name in ("groceries", *PACKED):
        with TemporaryDirectory() as scratch:
            root = getattr(options, name)
            packed = name in PACKED
            found = open_packed(root, "test") if packed else find_folders(root, Path(scratch) / "p")
            features = {
                spec: _saved(options.work / f"{name} {spec}.npy".replace(":", " "), found, spec)
                for spec in _specs(name)
            }
        labels = found.labels[_chosen(found)]
        features |= _combined(features) if packed else {}
        for title, classes in _class_sets(name, labels).items():
            accuracy[title] = _accuracies(features, labels, classes)
            print(title, "evaluated", flush=True)
    results = {
        "machine": versions(),
        "way": WAY,
        "query": QUERY,
        "episodes": EPISODES,
        "method": DEFAULT_METHOD,
        "accuracy": accuracy,
        "speed": measure_speed(),
    }
    write_results(results)


def write_results(results: Mapping[str, Any]) -> None:
    """Write the results, the document with its figure, and what the package keeps of them."""
    save_results("networks", results)
    write_text(MEASURED, measured_text(results))
    write_text(DOCS / "figures" / "networks.svg", plot(results))


def _specs(name: str) -> list[str]:
    """Networks and precisions, as in "efficientnet-lite0 int8"."""
    names = [*IMAGENET, *(() if name in PACKED else COMBINATIONS)]
    specs = [f"{one} {precision}" for precision in ("int8", "float32") for one in names]
    return [*specs, f"{MIRRORED} int8"] if name in ("groceries", "birds") else specs


def _saved(path: Path, found: PictureSet, spec: str) -> Features:
    """Features from the file, or computed and written to it."""
    if not path.exists():
        name, precision = spec.split()
        embedder = load_embedder(name, precision=precision, device="cpu")
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            np.save(file, _embedded(found, embedder))
        print(path.stem, flush=True)
    return np.asarray(np.load(path))


def _embedded(found: PictureSet, embedder: Embedder) -> Features:
    if isinstance(found.pictures, np.ndarray):
        pictures = found.pictures[_chosen(found)]
        block = embed_at(pictures, embedder, FeatureCache(None), range(len(pictures)))
        return block.features
    return embed_pictures(found.pictures, embedder, FeatureCache(None)).features


def _chosen(found: PictureSet) -> NDArray[np.int64]:
    """Positions at equal distances in each class of a packed set; of photographs all."""
    if not isinstance(found.pictures, np.ndarray):
        return np.arange(len(found.labels))
    rows = [np.flatnonzero(found.labels == label) for label in np.unique(found.labels)]
    return np.concatenate([one[np.linspace(0, len(one) - 1, EACH).astype(int)] for one in rows])


def _combined(features: Mapping[str, Features]) -> dict[str, Features]:
    """Features of combinations; from packed pictures, they are made of exactly these."""
    return {
        f"{name} {precision}": np.concatenate(
            [_unit(features[f"{part} {precision}"]) for part in parts], axis=1
        )
        for name, parts in COMBINATIONS.items()
        for precision in ("int8", "float32")
    }


def _unit(rows: Features) -> Features:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _class_sets(name: str, labels: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Sets of SETS by title; half of the groceries were used to calibrate int8."""
    everything = np.ones(len(labels), bool)
    return (
        {name: labels % 2 == 1, "all groceries": everything}
        if name == "groceries"
        else {name: everything}
    )


def _accuracies(
    features: Mapping[str, Features], labels: NDArray[np.int64], rows: NDArray[np.bool_]
) -> dict[str, Any]:
    """Accuracy of every network, and the paired difference of int8 to float32."""
    found: dict[str, Any] = {}
    per_episode: dict[tuple[str, str, int], NDArray[Any]] = {}
    for spec, matrix in features.items():
        results = evaluate(
            matrix[rows],
            labels[rows],
            list(METHODS),
            way=WAY,
            shot=list(SHOTS),
            query=QUERY,
            episodes=EPISODES,
            seed=0,
        )
        for one in results:
            cell = {"accuracy": one.accuracy, "ci95": one.ci95}
            found.setdefault(spec, {}).setdefault(one.method, {})[str(one.shot)] = cell
            per_episode[spec, one.method, one.shot] = one.per_episode
    for (spec, method, shot), values in per_episode.items():
        reference = (spec.replace(" int8", " float32"), method, shot)
        if " int8" in spec and reference in per_episode:
            mean, ci95 = mean_interval(values - per_episode[reference])
            found[spec][method][str(shot)] |= {"loss": -float(mean), "loss_ci95": float(ci95)}
    return found


def measure_speed(rounds: int = ROUNDS) -> dict[str, float]:
    """Decoded pictures per second and core, by the time of the processor, in alternating rounds."""
    specs = [f"{name} {p}" for name in (*IMAGENET, *COMBINATIONS) for p in ("int8", "float32")]
    works = {spec: _work(_loaded(spec)) for spec in specs}
    lite2 = TrainedBackbone.load("efficientnet-lite2")
    for precision in ("float32", "bfloat16"):
        works[f"efficientnet-lite2 torch {precision}"] = _work(
            TorchEmbedder(lite2, precision, "cpu")
        )
    times: dict[str, list[float]] = {spec: [] for spec in works}
    for number in range(rounds + 1):
        for spec, work in works.items():
            start = thread_time()
            work()
            if number:  # the first round also allocates
                times[spec].append(thread_time() - start)
    return {spec: PER_ROUND / median(spent) for spec, spent in times.items()}


def _loaded(spec: str) -> Embedder:
    name, precision = spec.split()
    return load_embedder(name, precision=precision, device="cpu")


def _work(embedder: Embedder) -> Callable[[], object]:
    shape = (PER_ROUND, embedder.size, embedder.size, 3)
    pictures = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    return lambda: embedder(pictures)


if __name__ == "__main__":
    main()
