"""An image classifier from a few examples, in Python."""

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect._utils.parameters import EMBEDDING_PRECISIONS
from protorect._utils.progress import Progress
from protorect.embedding.cache import FeatureCache, cache_folder
from protorect.embedding.pipeline import Embedded, embed_pictures
from protorect.embedding.sources import DEFAULT_SOURCE, Embedder, load_embedder
from protorect.embedding.sources.embedder import described
from protorect.errors import DataError, naming
from protorect.images.find import FailedPicture, FoundPictures, PictureSource, find_pictures
from protorect.images.stored import PathLike, StoredPicture
from protorect.labeling.examples import (
    Examples,
    ExampleSource,
    check_classes,
    find_examples,
    readable_labels,
)
from protorect.labeling.prediction import UNKNOWN, UNSURE, Prediction
from protorect.labeling.predictions import Predictions
from protorect.methods import method as checked_method
from protorect.uncertainty.classify import ClassifiedRow, classify
from protorect.uncertainty.thresholds import DEFAULT_THRESHOLDS, Thresholds, checked_thresholds

KIND = "image-classifier"  # of a saved file
_SAVED = {"source": str, "classes": [str], "contents": [str], "method": {str, None}}
_SAVED |= {"unknown": object, "unsure": object}  # which Thresholds checks
_SAVED |= {"precision?": str}  # older files lack it
_SAVED |= {"of_no_class?": [str]}


@dataclass(frozen=True, eq=False)
class ImageClassifier:
    """Features of labeled examples, and the network that computed them.

    Make one by `from_examples` or `load`. `predict` does not change it: the pictures that are
    labeled together influence each other's labels, and no later ones.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> import protorect
    >>> scratch = tempfile.TemporaryDirectory()
    >>> folder = Path(scratch.name)
    >>> for name in ("red", "blue"):
    ...     for number in range(3):
    ...         Image.new("RGB", (32 + number, 32), name).save(folder / f"{name}{number}.png")
    >>> examples = {name: [folder / f"{name}0.png"] for name in ("red", "blue")}
    >>> classifier = protorect.ImageClassifier.from_examples(examples, cache=False)
    >>> classifier.predict(folder / "red2.png").labels
    ['red']
    >>> classifier.save(folder / "colors.safetensors")
    >>> protorect.ImageClassifier.load(folder / "colors.safetensors", cache=False).classes
    ('blue', 'red')
    >>> scratch.cleanup()
    """

    embedder: Embedder
    source: str  # the name of the network
    support: NDArray[np.float32]  # (n, dim) features of the examples
    labels: NDArray[np.int64]  # (n,) positions in `classes`
    contents: tuple[bytes, ...]  # SHA-256 of each example's file
    classes: tuple[str, ...]  # sorted
    method: str | None = None  # None: one that suits the number of pictures
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    problems: tuple[FailedPicture, ...] = ()  # examples that could not be read
    cache: PathLike | None = None  # the folder of cached features
    unknown: NDArray[np.float32] | None = None  # (m, dim) of examples that are of none of them
    unknown_contents: tuple[bytes, ...] = ()  # SHA-256 of each of those
    notices: tuple[str, ...] = ()  # what a person should know of the examples

    @classmethod
    def from_examples(
        cls,
        examples: ExampleSource | Examples,
        *,
        source: PathLike = DEFAULT_SOURCE,
        method: str | None = None,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
        cache: PathLike | bool = True,
        precision: str = "auto",
        device: str = "auto",
        progress: Progress | None = None,
    ) -> Self:
        """Make a classifier from a few labeled pictures per class.

        Parameters
        ----------
        examples
            A folder of class folders, a CSV file with path and label, a labeling project, lists of
            pictures by label, or a list of those, of which a later one counts more. Pictures with
            the label `_unknown` are of none of the classes.
        source
            The network: a run, a file of weights, a pretrained network, `onnx:PATH`, `hf:NAME`.
        method
            The name of a method; None for one that suits the number of pictures.
        thresholds
            When a picture is set aside.
        cache
            The folder where features are cached; True for the user's cache folder, False for none.
        precision
            Of the network: "auto", "bfloat16", "float32" or "int8".
        device
            Where the network computes, as torch names it; "auto" is a GPU if there is one.
        progress
            Called with the number of examples done and the number of all.
        """
        if method is not None:
            checked_method(method)
        thresholds = checked_thresholds(thresholds)
        found = find_examples(examples)
        check_classes(found)
        embedder = load_embedder(source, precision=precision, device=device)
        folder = cache_folder(cache)
        with FeatureCache(folder) as features:
            embedded = embed_pictures(found.pictures, embedder, features, progress)
        positions = {name: position for position, name in enumerate(found.classes)}
        names, notices = readable_labels(found, embedded)
        places = [place for place, name in enumerate(names) if name != UNKNOWN]
        unknown = [place for place, name in enumerate(names) if name == UNKNOWN]
        return cls(
            embedder,
            os.fspath(source),
            embedded.features[places] if unknown else embedded.features,
            np.array([positions[names[place]] for place in places], np.int64),
            tuple(embedded.contents[place] for place in places),
            found.classes,
            method,
            thresholds,
            embedded.problems,
            folder,
            embedded.features[unknown],
            tuple(embedded.contents[place] for place in unknown),
            (*found.notices, *notices),
        )

    def predict(
        self,
        pictures: PictureSource | FoundPictures,
        *,
        thresholds: Thresholds | None = None,
        progress: Progress | None = None,
    ) -> Predictions:
        """Label pictures together: their features rectify the prototypes of the classes.

        Parameters
        ----------
        pictures
            A folder, a pattern, a list file, a picture, or several of those.
        thresholds
            When a picture is set aside; by default those of the classifier.
        progress
            Called with the number of pictures done and the number of all.
        """
        thresholds = checked_thresholds(self.thresholds if thresholds is None else thresholds)
        found = pictures if isinstance(pictures, FoundPictures) else find_pictures(pictures)
        embedded = self.embed(found.pictures, progress)
        return self.predict_embedded(embedded, thresholds)

    def embed(
        self, pictures: tuple[StoredPicture, ...], progress: Progress | None = None
    ) -> Embedded:
        """Compute features of pictures by this classifier's network."""
        with FeatureCache(self.cache) as features:
            return embed_pictures(pictures, self.embedder, features, progress)

    def predict_embedded(self, embedded: Embedded, thresholds: Thresholds) -> Predictions:
        """Label pictures by their features; a copy of an example has its label."""
        known = dict(zip(self.contents, self.labels.tolist(), strict=True))
        unknown = {content: row for row, content in enumerate(self.unknown_contents)}
        files = [picture.file for picture in embedded.pictures]
        rows = {}
        for i, content in enumerate(embedded.contents):
            if content in known:
                label = self.classes[known[content]]
                rows[i] = Prediction(files[i], label, 1.0, "", 1.0, 1.0, label)
        others = [i for i in range(len(files)) if i not in rows]
        new = [i for i in others if embedded.contents[i] not in unknown]
        method = self.method or ""
        if others:
            features = embedded.features if len(new) == len(files) else embedded.features[new]
            result = classify(self.support, self.labels, features, self.method, self.unknown)
            method, found = result.method, list(result.rows())
            place = {picture: row for row, picture in enumerate(new)}
            for i in others:
                row = unknown.get(embedded.contents[i])
                one = found[place[i] if row is None else len(new) + row]
                rows[i] = self._prediction(files[i], one, row is not None, thresholds)
        return Predictions(
            tuple(rows[i] for i in range(len(files))),
            embedded.problems,
            tuple(
                file
                for file, content in zip(files, embedded.contents, strict=True)
                if content in known or content in unknown
            ),
            self.classes,
            method,
            tuple(content.hex() for content in embedded.contents),
            described(self.embedder),
        )

    def _prediction(
        self, file: str, row: ClassifiedRow, is_unknown: bool, thresholds: Thresholds
    ) -> Prediction:
        """The prediction of a picture; one that `is_unknown` was taught to be of no class."""
        best, second, probability, second_probability, ood = row
        label = folder = self.classes[best]
        familiarity = 0.0 if is_unknown else 1 - ood
        if is_unknown or familiarity < thresholds.unknown:
            folder = UNKNOWN
        elif probability < thresholds.unsure:
            folder = UNSURE
        margin = probability - second_probability
        runner_up = self.classes[second]
        return Prediction(file, label, probability, runner_up, margin, familiarity, folder)

    def save(self, path: PathLike) -> None:
        """Write the examples' features, their labels and the name of the network into one file."""
        config = {
            "kind": KIND,
            "source": self.source,
            "network": self.embedder.digest,
            "precision": self.embedder.origin["precision"],
            "classes": list(self.classes),
            "contents": [content.hex() for content in self.contents],
            "method": self.method,
            "unknown": float(self.thresholds.unknown),
            "unsure": float(self.thresholds.unsure),
            "of_no_class": [content.hex() for content in self.unknown_contents],
        }
        tensors = {
            "support": torch.from_numpy(self.support),
            "labels": torch.from_numpy(self.labels),
        }
        if self.unknown is not None:
            tensors["unknown"] = torch.from_numpy(self.unknown)
        save_tensors(path, tensors, config)

    @classmethod
    def load(
        cls,
        path: PathLike,
        *,
        source: PathLike | None = None,
        cache: PathLike | bool = True,
        precision: str = "auto",
        device: str = "auto",
    ) -> Self:
        """Read what `save` wrote; the network is loaded by its name and must be the same one.

        Parameters
        ----------
        path
            The file.
        source
            Where the network is now, if it was moved.
        cache, device
            As in `from_examples`.
        precision
            By default that of the file: features of different precisions are never mixed.
        """
        tensors, config = load_tensors(path, KIND, _SAVED)
        try:
            fields = _saved_fields(tensors, config)
        except (KeyError, ValueError) as error:
            raise DataError(
                f"{path} holds a damaged classifier: {error}. Save it again."
            ) from error
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
        fields |= {"embedder": embedder, "source": source, "cache": cache_folder(cache)}
        return cls(**fields)


def sort_images(
    examples: ExampleSource | Examples, pictures: PictureSource, **options: Any
) -> Predictions:
    """Label pictures from a few examples; no file is touched.

    Parameters
    ----------
    examples
        As in `ImageClassifier.from_examples`.
    pictures
        A folder, a pattern, a list file, a picture, or several of those.
    options
        Those of `ImageClassifier.from_examples`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> import protorect
    >>> scratch = tempfile.TemporaryDirectory()
    >>> folder = Path(scratch.name)
    >>> for name in ("red", "blue"):
    ...     for number in range(3):
    ...         Image.new("RGB", (32 + number, 32), name).save(folder / f"{name}{number}.png")
    >>> examples = {name: [folder / f"{name}0.png"] for name in ("red", "blue")}
    >>> protorect.sort_images(examples, folder, cache=False).labels
    ['blue', 'blue', 'red', 'red']
    >>> scratch.cleanup()
    """
    known = find_examples(examples)
    found = find_pictures(pictures).without(files=known.apart)
    if not found.pictures:
        raise DataError("there is no picture to sort.")
    return ImageClassifier.from_examples(known, **options).predict(found)


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
