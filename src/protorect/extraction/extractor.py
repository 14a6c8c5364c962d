"""A backbone with its weights and what it wants done to a picture."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from protorect.backbones import BACKBONES, Backbone, build
from protorect.checkpoint import check_fits, load_tensors
from protorect.errors import DataError, OptionError, unknown_name
from protorect.training.embedding import Preprocessing
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


def tensors_digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 of names, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = tensors[name].detach().cpu().contiguous().numpy()
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
