"""Accuracy of a sorting where the folders the pictures came from are their true labels."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protorect.labeling.placements import Placement
from protorect.labeling.prediction import UNKNOWN

MOST_PAIRS, MOST_PAIRS_OF_MANY = 5, 20
MANY = 40  # classes from which on the pairs replace the confusion matrix


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predicted against true labels."""

    classes: tuple[str, ...]
    counts: NDArray[np.int64]  # (ways, ways) confusion matrix, one row per true class
    distractors: int  # pictures from a folder that is no class
    distractors_unknown: int
    accepted: int  # pictures that were not set aside, distractors included
    accepted_correct: int
    # The pairs most often confused: true class, label, and their pictures.
    confused: tuple[tuple[str, str, tuple[Placement, ...]], ...]

    @property
    def pictures(self) -> int:
        """Number of pictures of the classes."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float:
        """Percent of the pictures of the classes whose label is correct, set aside or not."""
        return 100 * int(np.trace(self.counts)) / max(self.pictures, 1)

    @property
    def accepted_accuracy(self) -> float:
        """Percent of the pictures in class folders that are in the right one."""
        return 100 * self.accepted_correct / max(self.accepted, 1)

    def summary(self) -> list[str]:
        """The figures in sentences."""
        lines = [
            f"accuracy {self.accuracy:.1f} % of {self.pictures} pictures",
            f"{self.accepted} were not set aside, {self.accepted_accuracy:.1f} % of them right"
            + (", other folders' pictures counted as wrong" if self.distractors else ""),
        ]
        if self.distractors:
            share = 100 * self.distractors_unknown / self.distractors
            lines.append(
                f"{share:.0f} % of {self.distractors} pictures of other folders are unknown"
            )
        return lines

    def json(self, network: str = "") -> str:
        """The figures as JSON with the network; the keys are those of earlier versions."""
        figures = {
            "network": network,
            "accuracy": self.accuracy,
            "pictures": self.pictures,
            "kept": self.accepted,
            "kept_accuracy": self.accepted_accuracy,
            "foreign": self.distractors,
            "foreign_unknown": self.distractors_unknown,
            "classes": list(self.classes),
            "confusion": self.counts.tolist(),
            "confused": [[true, label, len(pictures)] for true, label, pictures in self.confused],
        }
        return json.dumps(figures, indent=2) + "\n"


def evaluate_placements(placements: Sequence[Placement], classes: Sequence[str]) -> Evaluation:
    """Compare each label with the name of the folder its picture came from."""
    positions = {name: position for position, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), np.int64)
    wrong: dict[tuple[str, str], list[Placement]] = {}
    distractors = unknown = accepted = correct = 0
    for placement in placements:
        row = placement.prediction
        true = os.path.basename(os.path.dirname(row.path))
        if true not in positions:
            distractors += 1
            unknown += row.folder == UNKNOWN
            accepted += row.folder == row.label  # and wrong
            continue
        counts[positions[true], positions[row.label]] += 1
        if row.folder == row.label:
            accepted += 1
            correct += row.label == true
        if row.label != true:
            wrong.setdefault((true, row.label), []).append(placement)
    pairs = sorted(wrong.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    pairs = pairs[: MOST_PAIRS_OF_MANY if len(classes) >= MANY else MOST_PAIRS]
    confused = tuple((true, label, tuple(pictures)) for (true, label), pictures in pairs)
    return Evaluation(tuple(classes), counts, distractors, unknown, accepted, correct, confused)
