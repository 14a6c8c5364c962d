"""Audits: a person checks a random sample of the labels, which gives their accuracy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from protorect.errors import NotFoundError, OptionError
from protorect.labeling.acts import LabelState
from protorect.labeling.class_names import checked_class_name
from protorect.labeling.prediction import UNKNOWN
from protorect.labeling.records import AuditEstimate
from protorect.labeling.view import View
from protorect.uncertainty.expected_accuracy import binomial_interval


@dataclass
class OpenAudit:
    """A sample and the answers so far."""

    number: int
    population: int
    labels: dict[int, str]  # of the sample when the audit began
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    finished: bool = False

    def estimate(self) -> AuditEstimate:
        """The accuracy of the labels, by the answers so far."""
        checked = len(self.answers)
        right = sum(answer["right"] for answer in self.answers.values())
        low, high = binomial_interval(right, checked) if checked else (0.0, 1.0)
        return AuditEstimate(checked, right, right / checked if checked else None, low, high)

    def corrections(self) -> list[list[Any]]:
        """Labels of the pictures that were wrong, as an act has them."""
        labels: dict[str | None, list[int]] = {}
        for picture, answer in self.answers.items():
            if not answer["right"]:
                name = UNKNOWN if answer.get("unknown") else answer.get("label")
                labels.setdefault(name, []).append(picture)
        return [[name, ids] for name, ids in labels.items() if name is not None]


class Audits:
    """All audits of a project, by the revision that they began with."""

    def __init__(self) -> None:
        self._audits: dict[int, OpenAudit] = {}
        self.notes: set[int] = set()  # revisions of records about audits, which change no label

    def apply(self, record: Mapping[str, Any], revision: int) -> None:
        """Take a record of the journal into account."""
        kind = record["kind"]
        if kind == "start_audit":
            labels = dict(zip(record["ids"], record["labels"], strict=False))
            self._audits[revision] = OpenAudit(revision, record["population"], labels)
        elif kind == "answer_audit":
            audit = self.get(record["audit"])
            audit.answers |= {answer["id"]: answer for answer in record["answers"]}
        elif kind == "audit":
            self.get(record["audit"]).finished = True
        if kind in ("start_audit", "answer_audit"):
            self.notes.add(revision)

    def get(self, number: Any) -> OpenAudit:
        """An audit; NotFoundError if there is none."""
        if number not in self._audits:
            raise NotFoundError(f"there is no audit {number!r}; begin a new one.")
        return self._audits[number]

    def unanswered(self, revision: int, n: int) -> OpenAudit | None:
        """The last audit, if nothing has happened since it began and it has n pictures."""
        last = self._audits.get(revision)
        return last if last is not None and len(last.labels) == n and not last.answers else None


def sample(view: View, n: int, seed: int) -> dict[str, Any]:
    """The record that begins an audit of n random pictures among those that have a label."""
    if type(n) is not int or not 1 <= n <= 10_000:
        raise OptionError(f"n is {n!r}; it must be a whole number in 1 .. 10000.")
    population = np.flatnonzero(view.labeled)
    if not len(population):
        raise OptionError("no picture has a label yet; there is nothing to check.")
    chosen = np.random.default_rng(seed).permutation(population)[:n]
    labels = [view.names[number] for number in view.label[chosen].tolist()]
    fields = {"ids": chosen.tolist(), "labels": labels, "population": len(population)}
    return {"kind": "start_audit", **fields}


def checked_answers(
    audit: OpenAudit, state: LabelState, answers: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The answers to an audit; an error for one that makes no sense."""
    if audit.finished:
        raise OptionError(f"audit {audit.number} is finished; begin a new one.")
    checked = []
    for answer in answers:
        picture, right = answer.get("id"), answer.get("right")
        if picture not in audit.labels or isinstance(picture, bool):
            raise NotFoundError(f"picture {picture!r} is not part of audit {audit.number}.")
        if not isinstance(right, bool):
            raise OptionError(
                f"right is {right!r} for picture {picture}; it must be true or false."
            )
        label, unknown = answer.get("label"), bool(answer.get("unknown"))
        if label is not None and not right and not unknown:
            label = checked_class_name(label)
        checked.append({"id": int(picture), "right": right, "label": label, "unknown": unknown})
    return checked
