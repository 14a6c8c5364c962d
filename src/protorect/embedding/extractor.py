"""A backbone with its weights and what it wants done to a picture."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from protorect._utils.checkpoint import check_fits, load_tensors
from protorect.backbones.base import Backbone
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.pretrained import pretrained_weights
from protorect.backbones.registry import BACKBONES, build
from protorect.backbones.weights import BEST_WEIGHTS, WEIGHTS
from protorect.datasets.catalogue import ink_is_high
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import LARGEST_SIZE
from protorect.errors import DataError, OptionError, unknown_name


@dataclass(frozen=True)
class Extractor:
    """A backbone with its weights and what it wants done to a picture.

    Parameters
    ----------
    backbone
        With its weights.
    preprocessing
        Of pictures like those it was trained on.
    ink_high
        Whether those were drawings with ink as high values.
    """

    backbone: Backbone
    preprocessing: Preprocessing
    ink_high: bool = False

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> Extractor:
        """From the folder of a run, a file of weights, or the name of pretrained ones."""
        path = Path(source)
        if path.is_dir():
            path = path / BEST_WEIGHTS
        if path.exists() or path.suffix == ".safetensors":
            return cls._from_file(path)
        return cls._from_name(str(source))

    @classmethod
    def _from_file(cls, path: Path) -> Extractor:
        tensors, card = load_tensors(path, WEIGHTS)
        try:
            size = _possible_size(card["size"])
            backbone = build(card["backbone"], channels=card["channels"], size=size)
            mean, std = (_numbers(name, card[name], backbone.channels) for name in ("mean", "std"))
            ink_high = bool(card.get("ink_high", ink_is_high(card.get("data"))))
        except OptionError as error:
            raise DataError(f"{path} cannot be used: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path} does not say which backbone it is: {error}.") from error
        check_fits(tensors, backbone.state_dict(), f"{path} does not fit {backbone.name}")
        backbone.load_state_dict(tensors)
        return cls(backbone, Preprocessing(mean, std), ink_high)

    @classmethod
    def _from_name(cls, name: str) -> Extractor:
        packaged = pretrained_weights()
        if name in packaged:
            return cls._from_file(packaged[name])
        if name not in BACKBONES:
            ready = [known for known, spec in BACKBONES.items() if spec.pretrained]
            raise unknown_name(
                "run, weights file or pretrained backbone", name, [*packaged, *ready]
            )
        backbone = build(name)
        if backbone.mean is None or backbone.std is None:
            raise OptionError(f"{name} has no trained weights; train it first: protorect train.")
        return cls(backbone, Preprocessing(backbone.mean, backbone.std))

    def preprocessing_for(self, mean: Sequence[float]) -> Preprocessing:
        """What to do to pictures whose channels have this mean, on a scale of 0 to 1.

        Ink covers little of a drawing. So where the network knows ink as high values and most of
        the picture is high, the ink is dark, and dark and bright change places.
        """
        dark_ink = sum(mean) / len(mean) > 0.5
        return replace(self.preprocessing, inverted=self.ink_high and dark_ink)

    def made_by(self, data: PackedDataset, split: str) -> dict[str, Any]:
        """What the features of these pictures follow from, but for the precision."""
        preprocessing = self.preprocessing_for(data.mean)
        return {
            "backbone": self.backbone.name,
            "weights": self.digest,
            "data": data.name,
            "split": split,
            "pictures": data.split(split).digest,
            "size": self.backbone.size,
            "mean": list(preprocessing.mean),
            "std": list(preprocessing.std),
            "inverted": preprocessing.inverted,
        }

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


def _possible_size(size: Any) -> Any:
    if isinstance(size, int) and size > LARGEST_SIZE:
        raise OptionError(f"size is {size}; pictures have {LARGEST_SIZE} pixels a side at most.")
    return size


def _numbers(name: str, values: Any, count: int) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    good = len(numbers) == count and all(map(math.isfinite, numbers))
    if not good or (name == "std" and min(numbers) <= 0):
        raise OptionError(f"{name} is {values}; it must be {count} numbers, a std above 0.")
    return numbers
