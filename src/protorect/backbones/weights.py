"""Trained backbones: weights in files, and the preprocessing they expect."""

import hashlib
import os
import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from protorect._utils.checkpoint import check_fits, load_tensors
from protorect._utils.documents import checked
from protorect._utils.parameters import LARGEST_SIZE
from protorect.backbones.base import Backbone
from protorect.backbones.cosine_classifier import CosineClassifier
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.pretrained import pretrained_weights
from protorect.backbones.registry import BACKBONES, build
from protorect.errors import DataError, OptionError, unknown_name

BEST_WEIGHTS = "best.safetensors"  # in the folder of a run
WEIGHTS = "backbone"  # the kind of file that `load_tensors` checks
BASE_CLASSIFIER = "base_classifier."  # begins the names of the base classifier's tensors
# The backbone itself says which channels and sizes it takes.
_CARD: dict[str, Any] = {"backbone": str, "channels": object, "size": object, "ink_high?": bool}
_CARD |= {"mean": [float], "std": [float]}


@dataclass(frozen=True)
class TrainedBackbone:
    """A backbone with trained weights, and the preprocessing that it expects of its images."""

    backbone: Backbone
    preprocessing: Preprocessing
    bright_on_dark: bool = False  # trained on drawings with bright strokes on a dark background
    base_classifier: CosineClassifier | None = None  # of the base classes, if the file has it

    @classmethod
    def load(cls, source: str | os.PathLike[str], others: Iterable[str] = ()) -> Self:
        """Load the folder of a run, a file of weights, or pretrained weights by their name.

        `others` are further names that could have been meant.
        """
        path = Path(source)
        if path.is_dir():
            path = path / BEST_WEIGHTS
        if path.exists() or path.suffix == ".safetensors":
            return cls._from_file(path)
        packaged = pretrained_weights()
        if str(source) in packaged:
            return cls._from_file(packaged[str(source)])
        return cls._from_registry(str(source), [*packaged, *others])

    @classmethod
    def _from_file(cls, path: Path) -> Self:
        tensors, card = load_tensors(path, WEIGHTS)
        try:
            size = checked(card, _CARD)["size"]
            if isinstance(size, int) and size > LARGEST_SIZE:
                raise OptionError(
                    f"size is {size}; pictures have at most {LARGEST_SIZE} pixels per side."
                )
            backbone = build(card["backbone"], channels=card["channels"], size=size)
            mean, std = (_numbers(name, card[name], backbone.channels) for name in ("mean", "std"))
        except OptionError as error:
            raise DataError(f"{path} cannot be used: {error}") from error
        except ValueError as error:
            raise DataError(f"{path} does not say which backbone it is: {error}.") from error
        # Older files lack "ink_high"; of their data sets only Omniglot is bright on dark.
        bright_on_dark = card.get("ink_high", card.get("data") == "omniglot")
        base = {n: tensors.pop(n) for n in list(tensors) if n.startswith(BASE_CLASSIFIER)}
        check_fits(tensors, backbone.state_dict(), f"{path} does not fit {backbone.name}")
        backbone.load_state_dict(tensors)
        classifier = _base_classifier(base, backbone, path) if base else None
        return cls(backbone, Preprocessing(mean, std), bright_on_dark, classifier)

    @classmethod
    def _from_registry(cls, name: str, packaged: Iterable[str]) -> Self:
        if name not in BACKBONES:
            names = [*packaged, *(known for known, spec in BACKBONES.items() if spec.pretrained)]
            raise unknown_name("run, weights file or pretrained backbone", name, names)
        backbone = build(name)
        if backbone.preprocessing is None:
            raise OptionError(f"{name} has no trained weights; train it first: protorect train.")
        return cls(backbone, backbone.preprocessing)

    def preprocessing_for(self, mean: Sequence[float]) -> Preprocessing:
        """Preprocessing of images whose channels have this mean, on a scale of 0 to 1.

        Strokes cover little of a drawing. If the network was trained on bright strokes and the
        images are bright on average, their strokes are dark, so dark and bright are exchanged.
        """
        dark_strokes = sum(mean) / len(mean) > 0.5
        return replace(self.preprocessing, inverted=self.bright_on_dark and dark_strokes)

    @property
    def digest(self) -> str:
        """SHA-256 of the names, shapes and values of the weights."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.backbone.state_dict().items()):
            array = tensor.detach().cpu().contiguous().numpy()
            digest.update(f"{name} {array.dtype} {array.shape} ".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


def _base_classifier(
    tensors: dict[str, Tensor], backbone: Backbone, path: Path
) -> CosineClassifier:
    state = {name.removeprefix(BASE_CLASSIFIER): tensor for name, tensor in tensors.items()}
    classes = len(state["weight"]) if state.get("weight", torch.empty(())).ndim else 0
    classifier = CosineClassifier(backbone.dim, classes)
    where = f"the base classifier of {path} does not fit {backbone.name}"
    check_fits(state, classifier.state_dict(), where)
    classifier.load_state_dict(state)
    return classifier


def _numbers(name: str, values: list[float], count: int) -> tuple[float, ...]:
    if len(values) != count or (name == "std" and min(values) <= 0):
        shown = reprlib.repr(values)
        raise OptionError(f"{name} is {shown}; it must be {count} numbers, a std above 0.")
    return tuple(map(float, values))
