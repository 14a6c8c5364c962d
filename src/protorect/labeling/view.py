"""All pictures at one revision, as they are shown: label, status, probability.

A view is never changed, so that it can be read while the next one is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.labeling.acts import SAID_UNKNOWN, SAID_UNSURE, Classes, LabelState
from protorect.labeling.answers import Answers
from protorect.labeling.picture_rows import PictureRows
from protorect.labeling.picture_store import PictureStore
from protorect.labeling.project import Listed
from protorect.labeling.records import (
    ACCEPTED,
    EXAMPLE,
    PROPOSED,
    STATUSES,
    UNKNOWN_STATUS,
    UNSURE_STATUS,
    Changes,
    ClassInfo,
    Picture,
)
from protorect.uncertainty.thresholds import Thresholds

GONE = "the file is gone"
_LABELED = (PROPOSED, EXAMPLE, ACCEPTED)


@dataclass(frozen=True, eq=False)
class Read:
    """What is known of the files of all pictures, by their numbers."""

    listed: Sequence[Listed]
    records: NDArray[Any]  # of the store
    position: NDArray[np.int64]  # (n,) of the last record of a picture, -1 if it was not read yet

    @classmethod
    def of(cls, listed: Sequence[Listed], store: PictureStore) -> "Read":
        """What the store knows now."""
        position = np.full(len(listed), -1, np.int64)
        records = store.index
        known = records["id"] < len(listed)
        position[records["id"][known]] = np.flatnonzero(known)
        return cls(listed, records, position)

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self.records)

    def content(self, picture: int) -> bytes:
        """SHA-256 of a picture's file; empty if it was not read."""
        position = self.position[picture]
        if position < 0:
            return b""
        content = self.records["content"][position].tobytes()
        return content if any(content) else b""

    def error(self, picture: int) -> str | None:
        """Why a picture cannot be read."""
        if self.listed[picture].gone:
            return GONE
        position = self.position[picture]
        reason = b"" if position < 0 else self.records["reason"][position]
        return reason.decode("utf-8", "replace") or None

    @cached_property
    def unreadable(self) -> NDArray[np.bool_]:
        """(n,) whether a picture cannot be read."""
        wrong = np.array([one.gone for one in self.listed], bool)
        read = self.position >= 0
        wrong[read] |= self.records["reason"][self.position[read]] != b""
        return wrong


@dataclass(frozen=True, eq=False)
class View:
    """All pictures at one revision."""

    revision: int
    classes: Classes
    read: Read
    rows: PictureRows
    answers: Answers
    label: NDArray[np.int64]  # (n,) number of the class shown, -1 for none
    status: NDArray[np.uint8]  # (n,) index into STATUSES
    probability: NDArray[np.float32]  # (n,) of the label; NaN for none
    ood: NDArray[np.float32]  # (n,) NaN where it is not known
    last: Changes  # of the last act

    @classmethod
    def of(
        cls,
        revision: int,
        state: LabelState,
        read: Read,
        rows: PictureRows,
        answers: Answers,
        thresholds: Thresholds,
        last: Changes,
    ) -> "View":
        """Combine what people said with what the method answers."""
        n = state.pictures
        label, status = np.full(n, -1, np.int64), np.full(n, PROPOSED, np.uint8)
        probability, ood = np.full(n, np.nan, np.float32), np.full(n, np.nan, np.float32)
        if len(answers.ways):
            label[rows.ids], probability[rows.ids] = answers.best, answers.probability
            status[probability < thresholds.unsure] = UNSURE_STATUS  # not where it is NaN
            if answers.ood is not None:
                ood[rows.ids] = answers.ood
                status[1 - ood < thresholds.unknown] = UNKNOWN_STATUS
        given, aside = state.label >= 0, state.label == SAID_UNKNOWN
        label[given], probability[given | aside] = state.label[given], 1.0
        status[given] = np.where(state.accepted[given], ACCEPTED, EXAMPLE)
        status[state.label == SAID_UNSURE] = UNSURE_STATUS
        label[aside], probability[aside], status[aside] = -1, np.nan, UNKNOWN_STATUS
        arrays = label, status, probability, ood
        return cls(revision, state.classes, read, rows, answers, *arrays, last)

    @property
    def pictures(self) -> int:
        """Number of pictures."""
        return len(self.label)

    @cached_property
    def names(self) -> dict[int, str]:
        """Names of the classes by their numbers."""
        return {one.number: one.name for one in self.classes}

    @cached_property
    def labeled(self) -> NDArray[np.bool_]:
        """(n,) whether a picture is in a class, and neither unsure, unknown nor unreadable."""
        return np.isin(self.status, _LABELED) & (self.label >= 0) & ~self.read.unreadable

    @cached_property
    def name_order(self) -> NDArray[np.int64]:
        """The pictures by their names."""
        return np.array(
            sorted(range(self.pictures), key=lambda i: self.read.listed[i].name.casefold()),
            np.int64,
        )

    def changes_to(self, after: "View", own: NDArray[np.int64]) -> Changes:
        """The pictures whose label differs in a later view, without the act's own."""
        differs = self.label != after.label
        differs[own] = False
        ids = np.flatnonzero(differs)
        labels = np.stack([self.label[ids], after.label[ids]], axis=1)
        return Changes(ids, labels, self.names | after.names)

    def class_infos(self) -> tuple[ClassInfo, ...]:
        """The classes with their counts."""
        numbers_used = max((one.number for one in self.classes), default=-1) + 1
        counts = [
            np.bincount(
                self.label[(self.status == status) & (self.label >= 0)], minlength=numbers_used
            )
            for status in (EXAMPLE, ACCEPTED, PROPOSED)
        ]
        given = np.flatnonzero(np.isin(self.status, (EXAMPLE, ACCEPTED)) & ~self.read.unreadable)
        numbers, places = np.unique(self.label[given], return_index=True)
        thumbnails = dict(zip(numbers.tolist(), given[places].tolist(), strict=True))
        return tuple(
            ClassInfo(
                one.name,
                one.key,
                thumbnails.get(one.number),
                *(int(column[one.number]) for column in counts),
            )
            for one in self.classes
        )

    def records(self, ids: NDArray[np.int64]) -> tuple[Picture, ...]:
        """The records of some pictures."""
        places = self.rows.places(ids)
        known = np.flatnonzero(places >= 0) if len(self.answers.ways) else np.empty(0, np.int64)
        tops: dict[int, tuple[tuple[str, float], ...]] = {}
        if len(known):
            numbers, values = self.answers.top(places[known], 3)
            for place, row, p in zip(
                known.tolist(), numbers.tolist(), values.tolist(), strict=True
            ):
                pairs = zip(row, p, strict=True)
                tops[place] = tuple((self.names[number], round(one, 4)) for number, one in pairs)
        was = dict(zip(self.last.ids.tolist(), self.last.labels[:, 0].tolist(), strict=True))
        return tuple(
            self._record(picture, tops.get(place, ()), self.last.names.get(was.get(picture, -1)))
            for place, picture in enumerate(ids.tolist())
        )

    def _record(self, picture: int, top: tuple[tuple[str, float], ...], was: str | None) -> Picture:
        label = self.names.get(int(self.label[picture]))
        position = int(self.read.position[picture])
        width = height = None
        if position >= 0:
            record = self.read.records[position]
            width, height = int(record["width"]) or None, int(record["height"]) or None
        return Picture(
            picture,
            self.read.listed[picture].stored().path,
            label,
            STATUSES[self.status[picture]],
            _number(self.probability[picture]) if label else None,
            next((name for name, _ in top if name != label), None),
            top,
            was,
            _number(self.ood[picture]),
            width,
            height,
            self.read.content(picture)[:8].hex(),
            self.read.error(picture),
        )


def _number(value: np.float32) -> float | None:
    """A rounded number, None for NaN."""
    return None if np.isnan(value) else round(float(value), 4)
