"""How right a sorting was, where the pictures' own folders are their true labels."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.labeling.predictions import UNKNOWN
from protorect.sorting.journal import Entry

MOST_PAIRS = 5


@dataclass(frozen=True)
class Assessment:
    """Labels against the truth.

    Parameters
    ----------
    classes
        The labels, sorted.
    counts
        (ways, ways), how many pictures of the row's class were taken for the column's.
    foreign
        How many pictures lie in a folder that is no class.
    foreign_unknown
        How many of those were called unknown.
    kept, kept_right
        How many pictures of the classes were not set aside, and how many of those are right.
    confused
        The pairs most often confused: (true class, label, the pictures), the most frequent first.
    """

    classes: tuple[str, ...]
    counts: NDArray[np.int64]
    foreign: int
    foreign_unknown: int
    kept: int
    kept_right: int
    confused: tuple[tuple[str, str, tuple[Entry, ...]], ...]

    @property
    def pictures(self) -> int:
        """How many belong to one of the classes."""
        return int(self.counts.sum())

    @property
    def accuracy(self) -> float:
        """Percent of the pictures of the classes whose label is right, set aside or not."""
        return 100 * int(np.trace(self.counts)) / max(self.pictures, 1)

    @property
    def kept_accuracy(self) -> float:
        """Percent right of those that were not set aside."""
        return 100 * self.kept_right / max(self.kept, 1)

    def summary(self) -> list[str]:
        """In sentences."""
        lines = [
            f"accuracy {self.accuracy:.1f} % of {self.pictures} pictures",
            f"{self.kept} were not set aside, {self.kept_accuracy:.1f} % of them right",
        ]
        if self.foreign:
            share = 100 * self.foreign_unknown / self.foreign
            lines.append(f"{share:.0f} % of {self.foreign} pictures of other folders are unknown")
        return lines

    def json(self) -> str:
        """The figures."""
        held: dict[str, Any] = {
            "accuracy": self.accuracy,
            "pictures": self.pictures,
            "kept": self.kept,
            "kept_accuracy": self.kept_accuracy,
            "foreign": self.foreign,
            "foreign_unknown": self.foreign_unknown,
            "classes": list(self.classes),
            "confusion": self.counts.tolist(),
            "confused": [[true, label, len(some)] for true, label, some in self.confused],
        }
        return json.dumps(held, indent=2) + "\n"


def assess(entries: Sequence[Entry], classes: Sequence[str]) -> Assessment:
    """Compare each label with the name of the folder its picture came from."""
    places = {name: place for place, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), np.int64)
    wrong: dict[tuple[str, str], list[Entry]] = {}
    foreign: list[Entry] = []
    kept = kept_right = 0
    for entry in entries:
        row = entry.prediction
        true = os.path.basename(os.path.dirname(row.path))
        if true not in places:
            foreign.append(entry)
            continue
        counts[places[true], places[row.label]] += 1
        if row.folder == row.label:
            kept += 1
            kept_right += row.label == true
        if row.label != true:
            wrong.setdefault((true, row.label), []).append(entry)
    pairs = sorted(wrong.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:MOST_PAIRS]
    unknown = sum(entry.prediction.folder == UNKNOWN for entry in foreign)
    confused = tuple((true, label, tuple(some)) for (true, label), some in pairs)
    return Assessment(tuple(classes), counts, len(foreign), unknown, kept, kept_right, confused)
