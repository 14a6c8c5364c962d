"""From pictures to features on disk: resumable, in several processes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.manifest import MANIFEST
from protorect._utils.memory import keep_freed_memory
from protorect._utils.parallel import processes
from protorect._utils.progress import Progress
from protorect._utils.tensors import usable_device
from protorect.backbones.base import Backbone
from protorect.backbones.inference import batch_size, embed, move_network, uses_bfloat16
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.weights import TrainedBackbone
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import check_apart, prepare
from protorect.embedding.finished import check_same, is_there
from protorect.embedding.unfinished import Blocks, unfinished
from protorect.errors import DataError, OptionError


class Extraction(NamedTuple):
    """What an extraction did.

    Parameters
    ----------
    written
        False if the same features were there already.
    resumed
        Pictures that an earlier, interrupted extraction had done.
    inverted
        Whether dark and bright changed places, see `TrainedBackbone.preprocessing_for`.
    unreadable
        Pictures that could not be read, with the reason.
    """

    written: bool
    resumed: int
    inverted: bool
    unreadable: tuple[str, ...]


def extract(
    source: str | os.PathLike[str],
    pictures: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    split: str = "test",
    precision: str = "auto",
    device: str | torch.device = "cpu",
    workers: int = 1,
    progress: Progress | None = None,
) -> Extraction:
    """Write the features of pictures; what something else made is refused.

    An extraction that was interrupted leaves `out` + ".partial" and goes on when it is asked for
    again, to the same features.

    Parameters
    ----------
    source
        What `TrainedBackbone.load` takes.
    pictures
        A packed data set, or a folder of class folders, all of which are taken.
    out
        The .npz file to write, or that was written before; any other name is a feature store, a
        folder whose arrays are memory-mapped when read.
    split
        Of a packed data set.
    precision
        "auto", "bfloat16" or "float32", of the network.
    device
        Where to compute.
    workers
        Processes, which share the processor's threads.
    progress
        Called with the number of pictures done and the number of all; for a folder of class
        folders once more from the start, as they are first read and then looked at.
    """
    if workers < 1:
        raise OptionError(f"workers is {workers}; it must be 1 or more.")
    usable_device(device)
    out, pictures = Path(out), Path(pictures)
    network = TrainedBackbone.load(source)
    plain = not (pictures / MANIFEST).exists()
    if plain:
        check_apart(pictures, out)
    with unfinished(out) as work:
        if plain:
            data = _packed(network, pictures, work.pictures, progress)
            split = "test"
        else:
            data = PackedDataset.open(pictures)
        job = _Job(
            os.fspath(source),
            network.digest,
            data.path,
            split,
            uses_bfloat16(precision, device),
            str(device),
            max(1, torch.get_num_threads() // workers) if workers > 1 else None,
        )
        made_by = provenance(network, data, split)
        made_by["precision"] = "bfloat16" if job.half else "float32"
        inverted = network.preprocessing_for(data.mean).inverted
        unreadable = tuple(f"{one['path']}: {one['reason']}" for one in data.manifest["unreadable"])
        if is_there(out):
            check_same(out, made_by)
            work.discard()
            return Extraction(False, 0, inverted, unreadable)
        backbone = network.backbone
        blocks = work.begin(data.split(split), backbone.dim, made_by, batch_size(backbone))
        resumed = _fill(blocks, job, workers, progress)
        work.finish()
        return Extraction(True, resumed, inverted, unreadable)


def provenance(network: TrainedBackbone, data: PackedDataset, split: str) -> dict[str, Any]:
    """What the features of a split are determined by, except for the precision."""
    preprocessing = network.preprocessing_for(data.mean)
    return {
        "backbone": network.backbone.name,
        "weights": network.digest,
        "data": data.name,
        "split": split,
        "pictures": data.split(split).digest,
        "size": network.backbone.size,
        "mean": list(preprocessing.mean),
        "std": list(preprocessing.std),
        "inverted": preprocessing.inverted,
    }


@dataclass(frozen=True)
class _Job:
    """All that a process needs to know; it opens network and pictures itself."""

    source: str
    weights: str
    packed: Path
    split: str
    half: bool
    device: str
    threads: int | None  # of a worker; None in the process that asked


def _packed(
    network: TrainedBackbone, pictures: Path, folder: Path, progress: Progress | None
) -> PackedDataset:
    """A plain folder, packed as the network wants its pictures."""
    backbone, everything = network.backbone, (0.0, 0.0, 1.0)  # train, val, test
    return prepare(
        "folder",
        pictures,
        folder,
        size=backbone.size,
        channels=backbone.channels,
        split=everything,
        progress=progress,
    )


def _fill(blocks: Blocks, job: _Job, workers: int, progress: Progress | None) -> int:
    """Compute the blocks that are missing; how many pictures were there before."""
    missing = blocks.missing()
    resumed = done = blocks.n - sum(blocks.length(number) for number in missing)
    try:
        with processes(min(workers, max(1, len(missing)))) as run:
            for rows in run(partial(_fill_block, job, blocks), missing):
                done += rows
                if progress is not None:
                    progress(done, blocks.n)
    finally:
        _opened.cache_clear()
    return resumed


def _fill_block(job: _Job, blocks: Blocks, number: int) -> int:
    """Write the features of one block; how many pictures it has."""
    backbone, preprocessing, images = _opened(job)
    features = embed(
        backbone,
        images[blocks.rows(number)],
        preprocessing,
        bfloat16=job.half,
        device=job.device,
    )
    blocks.write(number, features)
    return len(features)


@lru_cache(maxsize=1)
def _opened(job: _Job) -> tuple[Backbone, Preprocessing, NDArray[np.uint8]]:
    """Network and pictures, once in each process."""
    if job.threads is not None:
        torch.set_num_threads(job.threads)
        keep_freed_memory()
    network = TrainedBackbone.load(job.source)
    if network.digest != job.weights:
        raise DataError(f"{job.source} changed while it was used; start again.")
    move_network(network.backbone, job.device, torch.channels_last)
    data = PackedDataset.open(job.packed)
    preprocessing = network.preprocessing_for(data.mean)
    return network.backbone, preprocessing, data.split(job.split).images
