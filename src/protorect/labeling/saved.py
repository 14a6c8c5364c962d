"""The file of an image classifier: features and labels of its examples, and its network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.errors import DataError
from protorect.images.stored import PathLike
from protorect.methods import method
from protorect.uncertainty.thresholds import Thresholds

KIND = "image-classifier"


def save_classifier(
    path: PathLike, support: NDArray[np.float32], labels: NDArray[np.int64], config: dict[str, Any]
) -> None:
    """Write features and labels of the examples, and the rest as JSON."""
    tensors = {"support": torch.from_numpy(support), "labels": torch.from_numpy(labels)}
    save_tensors(path, tensors, {"kind": KIND} | config)


def load_classifier(path: PathLike) -> tuple[dict[str, Any], str | None]:
    """Read the fields of a classifier but for its network, and the digest of that."""
    tensors, config = load_tensors(path, kind=KIND)
    try:
        return _restored(tensors, config), config.get("network")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} holds a damaged classifier: {error}. Save it again.") from error


def _restored(tensors: dict[str, torch.Tensor], config: dict[str, Any]) -> dict[str, Any]:
    support, labels = tensors["support"].numpy(), tensors["labels"].numpy()
    classes = tuple(config["classes"])
    if support.dtype != np.float32 or support.ndim != 2 or labels.shape != (len(support),):
        raise ValueError(f"features {support.shape} for labels {labels.shape}")
    if labels.dtype != np.int64 or set(labels.tolist()) != set(range(len(classes))):
        raise ValueError(f"labels do not number its {len(classes)} classes")
    contents = tuple(bytes.fromhex(content) for content in config["contents"])
    if len(contents) != len(support):
        raise ValueError(f"{len(contents)} contents for {len(support)} examples")
    if config["method"] is not None:
        method(config["method"])
    return {
        "source": str(config["source"]),
        "support": support,
        "labels": labels,
        "contents": contents,
        "classes": classes,
        "method": config["method"],
        "thresholds": Thresholds(config["unknown"], config["unsure"]),
    }
