"""What a labeling session answers; `json()` of each gives the fields of the HTTP API."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

STATUSES = ("proposed", "example", "accepted", "unsure", "unknown")
PROPOSED, EXAMPLE, ACCEPTED, UNSURE_STATUS, UNKNOWN_STATUS = range(len(STATUSES))


class Estimate(NamedTuple):
    """An accuracy in 0 .. 1 with its 95 % interval."""

    value: float
    low: float
    high: float

    def json(self) -> dict[str, float]:
        """The fields, rounded."""
        return {name: round(value, 4) for name, value in self._asdict().items()}


@dataclass(frozen=True)
class Picture:
    """One picture of a project, as it is labeled now."""

    id: int
    name: str
    label: str | None  # the most probable class, or the one a person gave
    status: str  # one of STATUSES
    probability: float | None  # of the label
    runner_up: str | None
    top: tuple[tuple[str, float], ...]  # the three most probable classes
    was: str | None  # the label before the last act, if that changed it
    ood: float | None  # out-of-distribution score in 0 .. 1
    width: int | None
    height: int | None
    version: str  # changes with the content; empty until the picture was read
    error: str | None  # why it cannot be read

    def json(self) -> dict[str, Any]:
        """The fields."""
        top = [{"label": label, "probability": value} for label, value in self.top]
        return self.__dict__ | {"top": top}


@dataclass(frozen=True)
class PicturePage:
    """Some of the pictures that were asked for."""

    revision: int
    total: int
    pictures: tuple[Picture, ...]

    def json(self) -> dict[str, Any]:
        """The fields."""
        return self.__dict__ | {"pictures": [one.json() for one in self.pictures]}


@dataclass(frozen=True)
class IdPage:
    """All pictures that were asked for, in their order."""

    revision: int
    total: int
    ids: tuple[int, ...]

    def json(self) -> dict[str, Any]:
        """The fields."""
        return self.__dict__ | {"ids": list(self.ids)}


class Change(NamedTuple):
    """The label of a picture that an act changed."""

    id: int
    from_: str | None
    to: str | None


@dataclass(frozen=True)
class Count:
    """How many pictures changed from one label to another."""

    from_: str | None
    to: str | None
    count: int


@dataclass(frozen=True, eq=False)
class Changes:
    """The pictures whose label an act changed, beside those that it was about."""

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]  # (n, 2) numbers of the classes before and after, -1 for none
    names: dict[int, str]  # of these classes

    @classmethod
    def none(cls) -> "Changes":
        """No changes."""
        return cls(np.empty(0, np.int64), np.empty((0, 2), np.int64), {})

    def each(self) -> tuple[Change, ...]:
        """One entry per picture."""
        name = self.names.get
        pairs = zip(self.ids.tolist(), self.labels.tolist(), strict=True)
        return tuple(Change(id_, name(before), name(after)) for id_, (before, after) in pairs)

    def summary(self) -> tuple[Count, ...]:
        """How many changed from which label to which, the largest first."""
        counts = Counter(map(tuple, self.labels.tolist()))
        name = self.names.get
        return tuple(Count(name(a), name(b), count) for (a, b), count in counts.most_common())


@dataclass(frozen=True)
class ClassInfo:
    """One class of a project."""

    name: str
    key: str | None
    thumbnail: int | None  # a picture of it
    examples: int
    accepted: int
    proposed: int


@dataclass(frozen=True)
class State:
    """A project at one revision."""

    classes: tuple[ClassInfo, ...]
    pictures: int
    embedded: int
    unreadable: int
    unsure: int
    unknown: int
    expected_accuracy: Estimate | None
    revision: int
    act: int  # the last act
    last: dict[str, Any] | None  # act, kind, count, label and summary of it
    undo: int  # how many acts can be undone
    redo: int
    progress: dict[str, Any] | None  # done, total, per_second, seconds_left while it embeds

    def json(self) -> dict[str, Any]:
        """The fields."""
        estimate = None if self.expected_accuracy is None else self.expected_accuracy.json()
        classes = [dict(one.__dict__) for one in self.classes]
        return self.__dict__ | {"classes": classes, "expected_accuracy": estimate}


@dataclass(frozen=True, eq=False)
class ActResult:
    """The answer to an act: what else it changed."""

    revision: int
    act: int
    kind: str
    label: str | None  # the class it was about, if it was one
    ids: tuple[int, ...]  # the pictures it was about
    changes: Changes
    state: State = field(repr=False)

    @property
    def changed(self) -> tuple[Change, ...]:
        """The other pictures whose label changed."""
        return self.changes.each()

    @property
    def summary(self) -> tuple[Count, ...]:
        """How many of them changed from which label to which."""
        return self.changes.summary()

    def __str__(self) -> str:
        parts = [f"{one.count} {one.from_ or 'none'} -> {one.to or 'none'}" for one in self.summary]
        count = len(self.changes.ids)
        noun = "picture" if count == 1 else "pictures"
        return f"{count} {noun} changed" + (f": {', '.join(parts)}" if parts else "")

    def event(self) -> dict[str, Any]:
        """The fields without the state."""
        return {
            "revision": self.revision,
            "act": self.act,
            "kind": self.kind,
            "ids": list(self.ids),
            "changed": [{"id": one.id, "from": one.from_, "to": one.to} for one in self.changed],
            "summary": summary_json(self.changes),
        }

    def json(self) -> dict[str, Any]:
        """The fields."""
        return self.event() | {"state": self.state.json()}


def summary_json(changes: Changes) -> list[dict[str, Any]]:
    """The summary of changes, for JSON."""
    return [{"from": one.from_, "to": one.to, "count": one.count} for one in changes.summary()]


@dataclass(frozen=True)
class Group:
    """Similar pictures that fit no class."""

    id: int  # the picture in their middle
    ids: tuple[int, ...]  # the most typical first


@dataclass(frozen=True)
class Groups:
    """Clusters of the pictures that fit no class, the largest first."""

    revision: int
    groups: tuple[Group, ...]
    single: int  # pictures in no group
    single_ids: tuple[int, ...] = ()  # the first of them

    def json(self) -> dict[str, Any]:
        """The fields, with the first 12 pictures of each group."""
        groups = [
            {"id": one.id, "size": len(one.ids), "ids": list(one.ids[:12])} for one in self.groups
        ]
        return self.__dict__ | {"groups": groups, "single_ids": list(self.single_ids)}


@dataclass(frozen=True)
class AuditEstimate:
    """The accuracy that the answers to an audit give, with its exact 95 % interval."""

    checked: int
    right: int
    accuracy: float | None  # None before the first answer
    low: float
    high: float
    act: ActResult | None = None  # the corrections, once it is finished

    def json(self) -> dict[str, Any]:
        """The fields."""
        fields = {name: value for name, value in self.__dict__.items() if name != "act"}
        return fields | (self.act.json() if self.act is not None else {})


@dataclass(frozen=True)
class Audit:
    """A random sample of the labeled pictures, to be checked by a person."""

    audit: int
    revision: int
    population: int  # number of labeled pictures
    pictures: tuple[Picture, ...]
    answers: tuple[dict[str, Any], ...]  # so far
    estimate: AuditEstimate  # by these answers

    def json(self) -> dict[str, Any]:
        """The fields."""
        pictures = [one.json() for one in self.pictures]
        return self.__dict__ | {"pictures": pictures, "estimate": self.estimate.json()}


@dataclass(frozen=True)
class Event:
    """Something that happened in a session."""

    kind: str  # "change", "probabilities" or "progress"
    revision: int
    data: dict[str, Any] | None


@dataclass(frozen=True)
class Exported:
    """What an export has written."""

    path: str
    pictures: int

    def json(self) -> dict[str, Any]:
        """The fields."""
        return dict(self.__dict__)
