"""Extraction: the features of labeled pictures, written to a file or store; resumable."""

import os
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from protorect._utils.manifest import MANIFEST
from protorect._utils.parameters import check_positive
from protorect._utils.progress import Progress
from protorect._utils.text import printable
from protorect.backbones.weights import TrainedBackbone
from protorect.datasets.packed import PackedDataset
from protorect.datasets.packing import check_every_class
from protorect.datasets.prepare import check_apart
from protorect.embedding.cache import FeatureCache, cache_folder
from protorect.embedding.partial import partial_extraction
from protorect.embedding.picture_sets import find_folders, open_packed, packed_origin
from protorect.embedding.pipeline import (
    PICTURES_PER_BLOCK,
    ROWS_PER_BLOCK,
    embed_at,
    embedded_blocks,
)
from protorect.embedding.sources import Embedder, load_embedder
from protorect.embedding.sources.embedder import origin_of
from protorect.embedding.store import is_extracted
from protorect.errors import DataError, OptionError


class Extraction(NamedTuple):
    """What an extraction did."""

    written: bool  # False if the same features existed already
    resumed: int  # number of pictures that an earlier, interrupted extraction had done
    inverted: bool  # whether dark and bright were exchanged, see `preprocessing_for`
    unreadable: tuple[str, ...]  # pictures that could not be read, with the reason


def extract(
    source: str | os.PathLike[str] | Embedder,
    pictures: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    split: str | None = None,
    precision: str = "auto",
    device: str | torch.device = "auto",
    workers: int | None = None,
    cache: str | os.PathLike[str] | bool = True,
    progress: Progress | None = None,
) -> Extraction:
    """Write the features of pictures; an existing `out` of another origin is refused.

    An interrupted extraction leaves `out` + ".partial"; the same call resumes it, and the features
    are the same as without the interruption.

    Parameters
    ----------
    source
        The network: a run, a file of weights, a pretrained network, `onnx:PATH`, `hf:NAME`; or
        one that is loaded.
    pictures
        A packed data set, or a folder or archive of class folders.
    split
        Of a packed data set: "train", "val" or "test", the default. Class folders have none.
    out
        The .npz file to write; any other name is a feature store, a folder whose arrays are
        memory-mapped when read.
    precision
        Of the network: "auto", "bfloat16", "float32" or "int8".
    device
        Where the network computes, as torch names it; "auto" is a GPU if there is one.
    workers
        Number of threads, each of which decodes and embeds some of the pictures; by default as
        many as torch uses.
    cache
        The folder where features of class folders are cached; True for the user's cache folder,
        False for none.
    progress
        Called with the numbers of pictures done and of all pictures.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> import protorect
    >>> scratch = tempfile.TemporaryDirectory()
    >>> folder = Path(scratch.name)
    >>> for name in ("red", "blue"):
    ...     (folder / "pictures" / name).mkdir(parents=True)
    ...     for number in range(3):
    ...         Image.new("RGB", (84, 84), name).save(folder / "pictures" / name / f"{number}.png")
    >>> done = protorect.extract("cub-conv64", folder / "pictures", folder / "features.npz")
    >>> features, labels = protorect.load_features(folder / "features.npz")
    >>> done.written, features.shape, labels.tolist()
    (True, (6, 1600), ['blue', 'blue', 'blue', 'red', 'red', 'red'])
    >>> scratch.cleanup()
    """
    if workers is not None:
        check_positive("workers", workers)
    out, folder = Path(out), Path(pictures)
    packed = (folder / MANIFEST).exists()
    if split is not None and folder.exists() and not packed:
        raise OptionError(
            f"split {split!r} is given, and {printable(folder)} has none: only packed data sets "
            "have splits; `protorect prepare` makes one."
        )
    if isinstance(source, str | os.PathLike):
        embedder = load_embedder(source, precision=precision, device=str(device))
    else:
        embedder = source
    if not packed:
        check_apart(folder, out)
    with partial_extraction(out) as unfinished:
        if packed:
            found = open_packed(folder, "test" if split is None else split)
        else:
            found = find_folders(folder, unfinished.pictures)
        embedder = embedder.suited_to(found.mean)
        made_by = embedder.origin | found.origin
        if is_extracted(out, made_by, found.digest):
            unfinished.discard()
            return Extraction(False, 0, made_by["inverted"], found.unreadable)
        blank = np.zeros((1, embedder.size, embedder.size, embedder.channels), np.uint8)
        dim = embedder(blank).shape[1]
        size = max(ROWS_PER_BLOCK if packed else PICTURES_PER_BLOCK, embedder.block)
        count = len(found.labels)
        with (
            closing(unfinished.open_rows(found, dim, made_by)) as rows,
            FeatureCache(cache_folder(cache)) as features,
        ):
            resumed = rows.done.pictures
            embed_block = partial(embed_at, found.pictures, embedder, features)
            with embedded_blocks(embed_block, range(resumed, count), size, workers) as blocks:
                for block in blocks:
                    rows.append(block)
                    if progress is not None:
                        progress(rows.done.pictures, count)
        class_of = [found.class_names[label] for label in found.labels]
        unreadable = [
            (class_of[position], f"{found.pictures[position].path}: {reason}")
            for position, reason in rows.done.unreadable
        ]
        try:
            check_every_class(Counter(class_of), unreadable)
        except DataError:
            unfinished.discard()
            raise
        unfinished.finish(rows.done, made_by | {"pictures": found.digest(rows.done.digest)})
        problems = (*found.unreadable, *(problem for _, problem in unreadable))
        return Extraction(True, resumed, made_by["inverted"], problems)


def provenance(network: TrainedBackbone, data: PackedDataset, split: str) -> dict[str, Any]:
    """What the features of a split are determined by, except for the precision."""
    preprocessing = network.preprocessing_for(data.mean)
    backbone = network.backbone
    described = origin_of(backbone.name, network.digest, backbone.size, preprocessing)
    return described | packed_origin(data, split)
