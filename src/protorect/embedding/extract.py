"""Extraction: the features of a data set, written to a file or store; resumable."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.manifest import MANIFEST
from protorect._utils.parameters import check_whole
from protorect._utils.progress import Progress
from protorect._utils.tensors import usable_device
from protorect.backbones.inference import batch_size, embed, move_network, uses_bfloat16
from protorect.backbones.weights import TrainedBackbone
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import check_apart, prepare
from protorect.embedding.partial import PartialRows, partial_extraction
from protorect.embedding.pipeline import worker_threads
from protorect.embedding.store import is_extracted

_ALL_TEST = (0.0, 0.0, 1.0)  # fractions of the classes in train, val and test


class Extraction(NamedTuple):
    """What an extraction did."""

    written: bool  # False if the same features existed already
    resumed: int  # number of pictures that an earlier, interrupted extraction had done
    inverted: bool  # whether dark and bright were exchanged, see `preprocessing_for`
    unreadable: tuple[str, ...]  # pictures that could not be read, with the reason


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
    """Write the features of pictures; an existing `out` that was made otherwise is refused.

    An interrupted extraction leaves `out` + ".partial"; the same call resumes it, and the features
    are the same as without the interruption.

    Parameters
    ----------
    source
        The folder of a run, a file of weights, or the name of pretrained weights.
    pictures
        A packed data set, one `split` of which is taken, or a folder of class folders.
    out
        The .npz file to write; any other name is a feature store, a folder whose arrays are
        memory-mapped when read.
    precision
        Of the network: "auto", "bfloat16" or "float32".
    workers
        Number of batches that are computed at the same time; they share torch's threads.
    progress
        Called with the numbers of pictures done and of all pictures; for a folder of class
        folders first while they are read, and then again while they are embedded.
    """
    check_whole("workers", workers, 1)
    usable_device(device)
    bfloat16 = uses_bfloat16(precision, device)
    out, pictures = Path(out), Path(pictures)
    network = TrainedBackbone.load(source)
    backbone = network.backbone
    packed = (pictures / MANIFEST).exists()
    if not packed:
        check_apart(pictures, out)
    with partial_extraction(out) as partial:
        if packed:
            data = PackedDataset.open(pictures)
        else:
            split = "test"
            data = prepare(
                "folder",
                pictures,
                partial.pictures / "packed",
                size=backbone.size,
                channels=backbone.channels,
                split=_ALL_TEST,
                progress=progress,
            )
        made_by = provenance(network, data, split)
        made_by["precision"] = "bfloat16" if bfloat16 else "float32"
        preprocessing = network.preprocessing_for(data.mean)
        unreadable = tuple(f"{one['path']}: {one['reason']}" for one in data.manifest["unreadable"])
        if is_extracted(out, made_by):
            partial.discard()
            return Extraction(False, 0, preprocessing.inverted, unreadable)
        selected = data.split(split)
        move_network(backbone, device, torch.channels_last)

        def embed_block(rows: slice) -> NDArray[np.float32]:
            images = selected.images[rows]
            return embed(backbone, images, preprocessing, bfloat16=bfloat16, device=device)

        rows = partial.open_rows(selected, backbone.dim, made_by, batch_size(backbone))
        resumed = _fill(rows, embed_block, workers, progress)
        del rows  # Windows does not move a folder with mapped files
        partial.finish()
        return Extraction(True, resumed, preprocessing.inverted, unreadable)


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


def _fill(
    rows: PartialRows,
    embed_block: Callable[[slice], NDArray[np.float32]],
    workers: int,
    progress: Progress | None,
) -> int:
    """Compute and write the missing blocks; return how many rows were done before."""
    missing = rows.missing()
    threads = max(1, torch.get_num_threads() // workers)
    resumed: int = len(rows) - sum(block.stop - block.start for block in missing)
    done = resumed
    try:
        with worker_threads(workers, threads) as map_blocks:
            for block, features in zip(missing, map_blocks(embed_block, missing), strict=True):
                rows.write(block, features)
                done += len(features)
                if progress is not None:
                    progress(done, len(rows))
    finally:
        rows.flush()
    return resumed
