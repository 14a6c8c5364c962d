"""Features of pictures by a trained backbone, in a file that knows what made it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from protorect.arrays import load_arrays, save_arrays
from protorect.backbones import BACKBONES, Backbone, build
from protorect.checkpoint import check_fits, load_tensors
from protorect.data.packed import MANIFEST, PackedDataset
from protorect.data.prepare import prepare
from protorect.errors import DataError, OptionError, unknown_name
from protorect.training.embedding import Preprocessing, embed, laid_out, uses_bfloat16
from protorect.training.run import WEIGHTS, Run


@dataclass(frozen=True)
class Extractor:
    """A backbone with its weights and what it wants done to a picture."""

    backbone: Backbone
    preprocessing: Preprocessing

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> Extractor:
        """From the folder of a run, a file of weights, or the name of a pretrained backbone."""
        path = Path(source)
        if path.is_dir():
            path = Run(path).best
        if path.exists() or path.suffix == ".safetensors":
            return cls._from_file(path)
        return cls._from_name(str(source))

    @classmethod
    def _from_file(cls, path: Path) -> Extractor:
        tensors, card = load_tensors(path, WEIGHTS)
        try:
            backbone = build(card["backbone"], channels=card["channels"], size=card["size"])
            preprocessing = Preprocessing(tuple(card["mean"]), tuple(card["std"]))
        except (KeyError, TypeError) as error:
            raise DataError(f"{path} does not say which backbone it is: {error}.") from error
        check_fits(tensors, backbone.state_dict(), f"{path} does not fit {backbone.name}")
        backbone.load_state_dict(tensors)
        return cls(backbone, preprocessing)

    @classmethod
    def _from_name(cls, name: str) -> Extractor:
        if name not in BACKBONES:
            ready = [known for known, spec in BACKBONES.items() if spec.pretrained]
            raise unknown_name("run, weights file or pretrained backbone", name, ready)
        backbone = build(name)
        if backbone.mean is None or backbone.std is None:
            raise OptionError(f"{name} has no trained weights; train it first: protorect train.")
        return cls(backbone, Preprocessing(backbone.mean, backbone.std))

    @property
    def digest(self) -> str:
        """SHA-256 of the weights."""
        return tensors_digest(self.backbone.state_dict())


class Extraction(NamedTuple):
    """Whether a file was written or was there already, and the pictures that could not be read."""

    written: bool
    unreadable: tuple[str, ...]


def extract(
    source: str | os.PathLike[str],
    pictures: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    split: str = "test",
    precision: str = "auto",
    device: str | torch.device = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> Extraction:
    """Write the features of pictures; a file that something else made is refused.

    Parameters
    ----------
    source
        What `Extractor.load` takes.
    pictures
        A packed data set, or a folder of class folders, all of which are taken.
    out
        The .npz file to write, or that was written before.
    split
        Of a packed data set.
    precision
        "auto", "bfloat16" or "float32", of the network.
    device
        Where to compute.
    progress
        Called with the number of pictures done and the number of all.
    """
    extractor = Extractor.load(source)
    if (Path(pictures) / MANIFEST).exists():
        data = PackedDataset.open(pictures)
        return _extract(extractor, data, Path(out), split, precision, device, progress)
    with TemporaryDirectory(prefix="protorect-") as folder:
        everything = (0.0, 0.0, 1.0)  # train, val, test
        size = extractor.backbone.size
        data = prepare("folder", pictures, Path(folder) / "packed", size=size, split=everything)
        return _extract(extractor, data, Path(out), "test", precision, device, progress)


def _extract(
    extractor: Extractor,
    data: PackedDataset,
    out: Path,
    split: str,
    precision: str,
    device: str | torch.device,
    progress: Callable[[int, int], None] | None,
) -> Extraction:
    pictures = data.split(split)
    half = uses_bfloat16(precision, device)
    unreadable = tuple(f"{one['path']}: {one['reason']}" for one in data.manifest["unreadable"])
    manifest = {
        "backbone": extractor.backbone.name,
        "weights": extractor.digest,
        "data": data.name,
        "split": split,
        "pictures": pictures.digest,
        "size": extractor.backbone.size,
        "mean": list(extractor.preprocessing.mean),
        "std": list(extractor.preprocessing.std),
        "precision": "bfloat16" if half else "float32",
    }
    if out.exists():
        _check_same(out, manifest)
        return Extraction(False, unreadable)
    laid_out(extractor.backbone, device, torch.channels_last)
    features = embed(
        extractor.backbone,
        pictures.images,
        extractor.preprocessing,
        half=half,
        device=device,
        progress=progress,
    )
    save_arrays(
        out,
        features=features,
        labels=np.asarray(pictures.labels),
        class_names=np.array(pictures.class_names),
        manifest=np.array(json.dumps(manifest)),
    )
    return Extraction(True, unreadable)


def tensors_digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of names, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = tensors[name].detach().cpu().contiguous().numpy()
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _check_same(out: Path, manifest: dict[str, Any]) -> None:
    held = load_arrays(out, required=("features",), optional=("manifest",)).get("manifest")
    try:
        made_by = json.loads(str(held))
        differs = [name for name in manifest if made_by.get(name) != manifest[name]]
    except (ValueError, AttributeError):
        differs = ["whatever made it"]
    if differs:
        raise DataError(
            f"{out} is there already and was made otherwise: {', '.join(differs)} "
            f"{'differs' if len(differs) == 1 else 'differ'}. Remove it or give another name."
        )
