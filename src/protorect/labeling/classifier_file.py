"""The file of a saved image classifier: features of its examples, and the name of its network."""

import os
from typing import TYPE_CHECKING, Any

import torch

from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect._utils.parameters import EMBEDDING_PRECISIONS
from protorect.embedding.sources import load_embedder
from protorect.errors import DataError, naming
from protorect.images.stored import PathLike
from protorect.methods import method as checked_method
from protorect.uncertainty.thresholds import Thresholds

if TYPE_CHECKING:
    from protorect.labeling.classifier import ImageClassifier

KIND = "image-classifier"  # of a saved file
_SAVED = {"source": str, "classes": [str], "contents": [str], "method": {str, None}}
_SAVED |= {"unknown": object, "unsure": object}  # which Thresholds checks
_SAVED |= {"precision?": str}  # older files lack it
_SAVED |= {"of_no_class?": [str]}


def write_classifier(path: PathLike, classifier: "ImageClassifier") -> None:
    """Write a classifier, whole or not at all."""
    config = {
        "kind": KIND,
        "source": classifier.source,
        "network": classifier.embedder.digest,
        "precision": classifier.embedder.origin["precision"],
        "classes": list(classifier.classes),
        "contents": [content.hex() for content in classifier.contents],
        "method": classifier.method,
        "unknown": float(classifier.thresholds.unknown),
        "unsure": float(classifier.thresholds.unsure),
        "of_no_class": [content.hex() for content in classifier.unknown_contents],
    }
    tensors = {
        "support": torch.from_numpy(classifier.support),
        "labels": torch.from_numpy(classifier.labels),
    }
    if classifier.unknown is not None:
        tensors["unknown"] = torch.from_numpy(classifier.unknown)
    save_tensors(path, tensors, config)


def read_classifier(
    path: PathLike, source: PathLike | None, precision: str, device: str
) -> dict[str, Any]:
    """The fields of a saved classifier; its network must be the same as when it was saved."""
    tensors, config = load_tensors(path, KIND, _SAVED)
    try:
        fields = _saved_fields(tensors, config)
    except (KeyError, ValueError) as error:
        raise DataError(f"{path} holds a damaged classifier: {error}. Save it again.") from error
    source = fields["source"] if source is None else os.fspath(source)
    precisions = _saved_precisions(config) if precision == "auto" else (precision,)
    with naming(path):
        embedders = (load_embedder(source, precision=p, device=device) for p in precisions)
        embedder = next((e for e in embedders if e.digest == config.get("network")), None)
    if embedder is None:
        raise DataError(
            f"{path} was made with other weights, preprocessing or precision than {source} has "
            f"now in {' or '.join(precisions)}; make it again from its examples."
        )
    return fields | {"embedder": embedder, "source": source}


def _saved_precisions(config: dict[str, Any]) -> tuple[str, ...]:
    """The precisions that the features of a saved classifier may have."""
    saved = config.get("precision")
    if saved in EMBEDDING_PRECISIONS:
        return (saved,)
    return ("auto",) if saved else ("float32", "bfloat16")  # "auto": the file of the network has it


def _saved_fields(tensors: dict[str, torch.Tensor], config: dict[str, Any]) -> dict[str, Any]:
    """The fields of a saved classifier, checked."""
    support, labels, classes = tensors["support"], tensors["labels"], tuple(config["classes"])
    if support.dtype != torch.float32 or support.ndim != 2 or labels.shape != (len(support),):
        raise ValueError(f"features {tuple(support.shape)} for labels {tuple(labels.shape)}")
    if labels.dtype != torch.int64 or set(labels.tolist()) != set(range(len(classes))):
        raise ValueError(f"labels do not number its {len(classes)} classes")
    contents = tuple(bytes.fromhex(content) for content in config["contents"])
    if len(contents) != len(support):
        raise ValueError(f"{len(contents)} contents for {len(support)} examples")
    unknown = tensors.get("unknown", support[:0])
    unknown_contents = tuple(map(bytes.fromhex, config.get("of_no_class", ())))
    if unknown.dtype != torch.float32 or unknown.shape != (len(unknown_contents), support.shape[1]):
        raise ValueError(f"features {tuple(unknown.shape)} of {len(unknown_contents)} unknown ones")
    if config["method"] is not None:
        checked_method(config["method"])
    return {
        "source": config["source"],
        "support": support.numpy(),
        "labels": labels.numpy(),
        "contents": contents,
        "classes": classes,
        "method": config["method"],
        "thresholds": Thresholds(config["unknown"], config["unsure"]),
        "unknown": unknown.numpy(),
        "unknown_contents": unknown_contents,
    }
