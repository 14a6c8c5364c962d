"""What is said of a sorting: how good it probably is, and what to label next."""

import numpy as np
import pytest

from protorect.embedding.pipeline import Embedded
from protorect.images.stored import StoredPicture
from protorect.labeling.prediction import Prediction
from protorect.labeling.predictions import Predictions
from protorect.sorting.advice import advise


def advice(rows, features, examples=(), count=10):
    pictures = tuple(StoredPicture(row.path, row.path, 1) for row in rows)
    contents = tuple(bytes([i]) * 32 for i in range(len(rows)))
    embedded = Embedded(pictures, np.array(features, np.float32), contents, ())
    hexes = tuple(one.hex() for one in contents)
    return advise(Predictions(tuple(rows), (), examples, (), "m", hexes), embedded, count)


def row(path, label, probability, folder=None):
    return Prediction(path, label, probability, "z", 2 * probability - 1, 0.5, folder or label)


def test_accuracy_classes_and_pictures():
    rows = [
        row("/1", "cat", 0.9),
        row("/2", "cat", 0.8),
        row("/3", "dog", 0.6),
        row("/4", "dog", 0.5, "_unsure"),
        row("/5", "dog", 0.55),
        row("/6", "cat", 1.0),  # an example
    ]
    features = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1.01, 1, 0], [0, 1, 1]]
    found = advice(rows, features, ("/6",))
    value, low, high = found.accuracy
    assert value == pytest.approx((0.9 + 0.8 + 0.6 + 0.55) / 4)
    assert low < value < high
    assert found.classes == ("dog",)
    # 5 is nearly the same picture as 4, and comes last.
    assert found.pictures == ("/4", "/3", "/2", "/1", "/5")
    assert "expected accuracy in the class folders 71 %" in found.sentences()[0]


def test_nothing_but_examples():
    found = advice([row("/1", "cat", 1.0)], [[1, 0]], ("/1",))
    assert found.accuracy is None
    assert found.sentences() == []
