"""Predictions of an image classifier from features of pictures."""

from typing import TYPE_CHECKING

from protorect.embedding.pipeline import Embedded
from protorect.embedding.sources.embedder import described
from protorect.labeling.prediction import UNKNOWN, UNSURE, Prediction
from protorect.labeling.predictions import Predictions
from protorect.uncertainty.classify import ClassifiedRow, classify
from protorect.uncertainty.thresholds import Thresholds

if TYPE_CHECKING:
    from protorect.labeling.classifier import ImageClassifier


def predictions_of(
    classifier: "ImageClassifier", embedded: Embedded, thresholds: Thresholds
) -> Predictions:
    """Label pictures by their features; a copy of an example has its label."""
    known = dict(zip(classifier.contents, classifier.labels.tolist(), strict=True))
    unknown = {content: row for row, content in enumerate(classifier.unknown_contents)}
    files = [picture.file for picture in embedded.pictures]
    rows = {}
    for i, content in enumerate(embedded.contents):
        if content in known:
            label = classifier.classes[known[content]]
            rows[i] = Prediction(files[i], label, 1.0, "", 1.0, 1.0, label)
    others = [i for i in range(len(files)) if i not in rows]
    new = [i for i in others if embedded.contents[i] not in unknown]
    method = classifier.method or ""
    if others:
        features = embedded.features if len(new) == len(files) else embedded.features[new]
        result = classify(
            classifier.support, classifier.labels, features, classifier.method, classifier.unknown
        )
        method, found = result.method, list(result.rows())
        place = {picture: row for row, picture in enumerate(new)}
        for i in others:
            row = unknown.get(embedded.contents[i])
            one = found[place[i] if row is None else len(new) + row]
            rows[i] = _prediction(classifier.classes, files[i], one, row is not None, thresholds)
    return Predictions(
        tuple(rows[i] for i in range(len(files))),
        embedded.problems,
        tuple(
            file
            for file, content in zip(files, embedded.contents, strict=True)
            if content in known or content in unknown
        ),
        classifier.classes,
        method,
        tuple(content.hex() for content in embedded.contents),
        described(classifier.embedder),
    )


def _prediction(
    classes: tuple[str, ...],
    file: str,
    row: ClassifiedRow,
    is_unknown: bool,
    thresholds: Thresholds,
) -> Prediction:
    """The prediction of a picture; one that `is_unknown` was taught to be of no class."""
    best, second, probability, second_probability, ood = row
    label = folder = classes[best]
    familiarity = 0.0 if is_unknown else 1 - ood
    if is_unknown or familiarity < thresholds.unknown:
        folder = UNKNOWN
    elif probability < thresholds.unsure:
        folder = UNSURE
    margin = probability - second_probability
    runner_up = classes[second]
    return Prediction(file, label, probability, runner_up, margin, familiarity, folder)
