"""How good a sorting probably is, and what would make it better."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from protorect.embedding.pipeline import Embedded
from protorect.labeling.predictions import Predictions
from protorect.uncertainty.expected_accuracy import expected_accuracy
from protorect.uncertainty.suggest import near_duplicates_last

_DOUBTFUL = 0.8  # mean probability of a class below which it needs examples
_MOST_CLASSES, _MOST_PICTURES, _CANDIDATES = 5, 5, 100


@dataclass(frozen=True)
class Advice:
    """Expected accuracy of the pictures that are in a class folder, and what to label next."""

    accuracy: tuple[float, float, float] | None  # in 0 .. 1, with its 95 % interval
    classes: tuple[str, ...]  # that need examples, those with most wrong labels first
    pictures: tuple[str, ...]  # whose labels would help most

    def sentences(self) -> list[str]:
        """What a person should know of it."""
        lines = []
        if self.accuracy is not None:
            value, low, high = (100 * share for share in self.accuracy)
            lines.append(
                f"expected accuracy in the class folders {value:.0f} % ({low:.0f} to {high:.0f} %)"
            )
        if self.classes:
            lines.append(f"more examples would help most for {', '.join(self.classes)}")
        if self.pictures:
            lines.append("labels that would help most:")
            lines += [f"        {path}" for path in self.pictures]
        return lines


def advise(predictions: Predictions, embedded: Embedded, examples: int) -> Advice:
    """Advice from predictions with their features; there were so many `examples`."""
    copies = set(predictions.examples)
    rows = [row for row in predictions.rows if row.path not in copies]
    placed = np.array([row.probability for row in rows if row.folder == row.label], np.float32)
    accuracy = expected_accuracy(placed, 0, examples) if len(placed) else None
    by_class: defaultdict[str, list[float]] = defaultdict(list)
    for row in rows:
        by_class[row.label].append(1 - row.probability)
    doubtful = [name for name, wrong in by_class.items() if np.mean(wrong) > 1 - _DOUBTFUL]
    doubtful.sort(key=lambda name: (-sum(by_class[name]), name))
    closest = sorted(rows, key=lambda row: row.margin)[:_CANDIDATES]
    return Advice(
        accuracy,
        tuple(doubtful[:_MOST_CLASSES]),
        _different([row.path for row in closest], embedded)[:_MOST_PICTURES],
    )


def _different(paths: Sequence[str], embedded: Embedded) -> tuple[str, ...]:
    """The same pictures, those that are nearly equal to an earlier one last."""
    positions = {picture.file: place for place, picture in enumerate(embedded.pictures)}
    features = embedded.features[[positions[path] for path in paths]]
    if not len(features):
        return ()
    return tuple(paths[i] for i in near_duplicates_last(torch.from_numpy(features)).tolist())
