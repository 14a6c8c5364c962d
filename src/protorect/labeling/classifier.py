"""A classifier of pictures from a few examples, in Python."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect._utils.progress import Progress
from protorect.embedding.cache import FeatureCache, user_cache
from protorect.embedding.pipeline import Embedded, embed_pictures
from protorect.embedding.sources import DEFAULT_SOURCE, Embedder, load_embedder
from protorect.errors import DataError
from protorect.images.find import FailedPicture, FoundPictures, PictureSource, find_pictures
from protorect.images.stored import PathLike, StoredPicture
from protorect.labeling.examples import Examples, ExampleSource, find_examples, read_labels
from protorect.labeling.predictions import UNKNOWN, UNSURE, Prediction, Predictions
from protorect.labeling.saved import load_classifier, save_classifier
from protorect.methods import method as checked_method
from protorect.uncertainty.predict import classify
from protorect.uncertainty.thresholds import DEFAULT_THRESHOLDS, Thresholds


@dataclass(frozen=True)
class ImageClassifier:
    """Examples as features, and the network that made them.

    Make one by `from_examples` or `load`. It keeps nothing of the piles it labels: what a pile
    says about the classes is used for that pile.

    Parameters
    ----------
    embedder
        The network.
    source
        The name it was loaded by.
    support, labels
        (n, dim), and the positions of their classes, (n,).
    contents
        SHA-256 of the examples' files, in step.
    classes
        The labels, sorted.
    method
        The name of a method; None for one that suits the size of the pile.
    thresholds
        When a picture is set aside.
    problems
        Examples that could not be read.
    cache
        Where features are kept; None for nowhere.
    """

    embedder: Embedder
    source: str
    support: NDArray[np.float32]
    labels: NDArray[np.int64]
    contents: tuple[bytes, ...]
    classes: tuple[str, ...]
    method: str | None = None
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    problems: tuple[FailedPicture, ...] = ()
    cache: PathLike | None = None

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
        device: str = "cpu",
        progress: Progress | None = None,
    ) -> ImageClassifier:
        """Learn classes from a few labelled pictures each.

        Parameters
        ----------
        examples
            A folder of class folders, a CSV file with path and label, or lists of pictures by
            label.
        source
            The network: a run, a file of weights, a pretrained backbone, `onnx:PATH`, `hf:NAME`.
        method
            The name of a method; None for one that suits the size of the pile.
        thresholds
            When a picture is set aside.
        cache
            The folder where features are kept; True for the user's cache folder, False for none.
        precision
            Of the network: "auto", "bfloat16" or "float32".
        device
            Where the network computes, as torch names it.
        progress
            Called with the number of examples done and the number of all.
        """
        if method is not None:
            checked_method(method)
        found = examples if isinstance(examples, Examples) else find_examples(examples)
        embedder = load_embedder(source, precision=precision, device=device)
        folder = user_cache() if cache is True else None if cache is False else cache
        with FeatureCache(folder) as kept:
            embedded = embed_pictures(found.pictures, embedder, kept, progress)
        labels = read_labels(found, embedded)
        positions = {name: place for place, name in enumerate(found.classes)}
        return cls(
            embedder,
            os.fspath(source),
            embedded.features,
            np.array([positions[label] for label in labels], np.int64),
            embedded.contents,
            found.classes,
            method,
            thresholds,
            embedded.problems,
            folder,
        )

    def predict(
        self,
        pictures: PictureSource | FoundPictures,
        *,
        thresholds: Thresholds | None = None,
        progress: Progress | None = None,
    ) -> Predictions:
        """Label a pile of pictures, all together: the pile corrects what the examples say.

        Parameters
        ----------
        pictures
            A folder, a pattern, a list file, a picture, or several of those.
        thresholds
            When a picture is set aside; the classifier's own if not given.
        progress
            Called with the number of pictures done and the number of all.
        """
        pile = pictures if isinstance(pictures, FoundPictures) else find_pictures(pictures)
        embedded = self.embed(pile.pictures, progress)
        return self.sort(embedded, thresholds or self.thresholds)

    def embed(
        self, pictures: tuple[StoredPicture, ...], progress: Progress | None = None
    ) -> Embedded:
        """Features of pictures by this classifier's network."""
        with FeatureCache(self.cache) as kept:
            return embed_pictures(pictures, self.embedder, kept, progress)

    def sort(self, pile: Embedded, thresholds: Thresholds) -> Predictions:
        """Label pictures whose features are known."""
        of_example = dict(zip(self.contents, self.labels.tolist(), strict=True))
        unlabelled = [i for i, content in enumerate(pile.contents) if content not in of_example]
        rows: dict[int, Prediction] = {}
        used = self.method or ""
        if unlabelled:
            whole = len(unlabelled) == len(pile.pictures)
            features = pile.features if whole else pile.features[unlabelled]
            found = classify(self.support, self.labels, features, self.method)
            used = found.method
            columns = (found.best, found.second, found.probability, found.second_probability)
            answers = zip(
                *(column.tolist() for column in (*columns, found.familiarity)), strict=True
            )
            for i, answer in zip(unlabelled, answers, strict=True):
                rows[i] = self._prediction(pile.pictures[i].file, answer, thresholds)
        for i, content in enumerate(pile.contents):
            if content in of_example:
                label = self.classes[of_example[content]]
                rows[i] = Prediction(pile.pictures[i].file, label, 1.0, "", 1.0, 1.0, label)
        return Predictions(
            tuple(rows[i] for i in range(len(pile.pictures))),
            pile.problems,
            tuple(
                p.file for p, c in zip(pile.pictures, pile.contents, strict=True) if c in of_example
            ),
            self.classes,
            used,
            tuple(content.hex() for content in pile.contents),
        )

    def save(self, path: PathLike) -> None:
        """Write the examples' features, their labels and the name of the network into one file."""
        save_classifier(
            path,
            support=self.support,
            labels=self.labels,
            config={
                "source": self.source,
                "network": self.embedder.digest,
                "classes": list(self.classes),
                "contents": [content.hex() for content in self.contents],
                "method": self.method,
                "unknown": float(self.thresholds.unknown),
                "unsure": float(self.thresholds.unsure),
            },
        )

    @classmethod
    def load(
        cls,
        path: PathLike,
        *,
        source: PathLike | None = None,
        cache: PathLike | bool = True,
        precision: str = "auto",
        device: str = "cpu",
    ) -> ImageClassifier:
        """Read what `save` wrote; the network is loaded by its name and must be the same one.

        Parameters
        ----------
        path
            The file.
        source
            Where the network is now, if it was moved.
        cache, precision, device
            As in `from_examples`.
        """
        loaded, network = load_classifier(path)
        where = loaded["source"] if source is None else os.fspath(source)
        embedder = load_embedder(where, precision=precision, device=device)
        folder = user_cache() if cache is True else None if cache is False else cache
        self = cls(**(loaded | {"embedder": embedder, "source": where, "cache": folder}))
        if embedder.digest != network:
            raise DataError(
                f"{path} was made with other weights, preprocessing or precision than {where} has "
                "now; make it again from its examples."
            )
        return self

    def with_thresholds(self, thresholds: Thresholds) -> ImageClassifier:
        """The same classifier that sets pictures aside at other points."""
        return replace(self, thresholds=thresholds)

    def _prediction(
        self, file: str, answer: tuple[int, int, float, float, float], thresholds: Thresholds
    ) -> Prediction:
        best, second, probability, runner_up, familiarity = answer
        label, other = self.classes[best], self.classes[second]
        folder = label
        if familiarity < thresholds.unknown:
            folder = UNKNOWN
        elif probability < thresholds.unsure:
            folder = UNSURE
        return Prediction(
            file, label, probability, other, probability - runner_up, familiarity, folder
        )


def sort_images(examples: ExampleSource, pictures: PictureSource, **options: Any) -> Predictions:
    """Label a pile of pictures from a few examples; no file is touched.

    Parameters
    ----------
    examples
        A folder of class folders, a CSV file with path and label, or lists of pictures by label.
    pictures
        A folder, a pattern, a list file, a picture, or several of those.
    options
        Those of `ImageClassifier.from_examples`.
    """
    found = find_examples(examples)
    pile = find_pictures(pictures).without(files=[picture.file for picture in found.pictures])
    if not pile.pictures:
        raise DataError("there is no picture to sort.")
    return ImageClassifier.from_examples(found, **options).predict(pile)
