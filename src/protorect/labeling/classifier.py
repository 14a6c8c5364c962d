"""An image classifier from a few examples, in Python."""

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from protorect._utils.progress import Progress
from protorect.embedding.cache import FeatureCache, cache_folder
from protorect.embedding.pipeline import Embedded, embed_pictures
from protorect.embedding.sources import DEFAULT_SOURCE, Embedder, load_embedder
from protorect.embedding.sources.embedder import described
from protorect.errors import DataError
from protorect.images.find import FailedPicture, FoundPictures, PictureSource, find_pictures
from protorect.images.stored import PathLike, StoredPicture
from protorect.labeling.classifier_file import read_classifier, write_classifier
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
            tuple(embedded.digests[place] for place in places),
            found.classes,
            method,
            thresholds,
            embedded.problems,
            folder,
            embedded.features[unknown],
            tuple(embedded.digests[place] for place in unknown),
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
        files, contents = [picture.file for picture in embedded.pictures], embedded.digests
        new = [i for i, one in enumerate(contents) if one not in known and one not in unknown]
        method = self.method or ""
        classified: list[ClassifiedRow] = []  # of the new pictures, then of the unknown examples
        if not known.keys() >= set(contents):
            features = embedded.features if len(new) == len(files) else embedded.features[new]
            result = classify(self.support, self.labels, features, self.method, self.unknown)
            method, classified = result.method, list(result.rows())
        rows, of_new = [], iter(classified)
        for file, content in zip(files, contents, strict=True):
            if content in known:
                rows.append(Prediction.said(file, self.classes[known[content]]))
            elif content in unknown:
                taught = classified[len(new) + unknown[content]]
                rows.append(self._prediction(file, taught, thresholds, is_unknown=True))
            else:
                rows.append(self._prediction(file, next(of_new), thresholds))
        return Predictions(
            tuple(rows),
            embedded.problems,
            tuple(files[i] for i, one in enumerate(contents) if one in known or one in unknown),
            self.classes,
            method,
            tuple(content.hex() for content in contents),
            described(self.embedder),
        )

    def _prediction(
        self, file: str, row: ClassifiedRow, thresholds: Thresholds, is_unknown: bool = False
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
        write_classifier(path, self)

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
        fields = read_classifier(path, source, precision, device)
        return cls(**fields, cache=cache_folder(cache))


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
