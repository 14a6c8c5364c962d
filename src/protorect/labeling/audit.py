"""Audits: a person checks a random sample of the labels, which gives their accuracy."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from protorect.errors import NotFoundError, OptionError
from protorect.labeling.class_names import checked_class_name
from protorect.labeling.prediction import UNKNOWN
from protorect.labeling.records import ActResult, AuditEstimate
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

    def estimate(self, act: ActResult | None = None) -> AuditEstimate:
        """The accuracy of the labels, by the answers so far; `act` has made the corrections."""
        checked = len(self.answers)
        right = sum(answer["right"] for answer in self.answers.values())
        low, high = binomial_interval(right, checked) if checked else (0.0, 1.0)
        return AuditEstimate(checked, right, right / checked if checked else None, low, high, act)

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
            self._audits[revision] = OpenAudit(revision, record["population"], _labels(record))
        elif kind == "extend_audit":
            self.get(record["audit"]).labels |= _labels(record)
        elif kind == "answer_audit":
            audit = self.get(record["audit"])
            audit.answers |= {answer["id"]: answer for answer in record["answers"]}
        elif kind == "audit":
            self.get(record["audit"]).finished = True
        if kind in ("start_audit", "extend_audit", "answer_audit"):
            self.notes.add(revision)

    def get(self, number: Any) -> OpenAudit:
        """An audit; NotFoundError if there is none."""
        if number not in self._audits:
            raise NotFoundError(f"there is no audit {number!r}; begin a new one.")
        return self._audits[number]

    def latest(self) -> OpenAudit:
        """The audit that began last; there must be one."""
        return self._audits[max(self._audits)]

    def record_for(self, n: int, view: View, revision: int) -> dict[str, Any] | None:
        """The record that begins an audit of n random labeled pictures, or extends the last one.

        None if the last audit goes on as it is. It is extended by the next pictures of the same
        random order.
        """
        if type(n) is not int or not 1 <= n <= 10_000:
            raise OptionError(f"n is {n!r}; it must be a whole number in 1 .. 10000.")
        begun = self.latest() if self._audits else None
        # Nothing but answers may have come since.
        if begun and not set(range(begun.number, revision + 1)) <= self.notes:
            begun = None
        if begun is None or begun.finished or (n < len(begun.labels) and not begun.answers):
            population = int(view.labeled.sum())
            if not population:
                raise OptionError("no picture has a label yet; there is nothing to check.")
            sample = _sample(view, n, revision + 1, {})
            return {"kind": "start_audit", **sample, "population": population}
        if len(begun.labels) < min(n, begun.population):
            more = _sample(view, n - len(begun.labels), begun.number, begun.labels)
            return {"kind": "extend_audit", "audit": begun.number, **more}
        return None


def _sample(view: View, n: int, number: int, known: Container[int]) -> dict[str, Any]:
    order = np.random.default_rng(number).permutation(np.flatnonzero(view.labeled)).tolist()
    chosen = [picture for picture in order if picture not in known][:n]
    return {"ids": chosen, "labels": [view.names[one] for one in view.label[chosen].tolist()]}


def _labels(record: Mapping[str, Any]) -> dict[int, str]:
    return dict(zip(record["ids"], record["labels"], strict=False))


def checked_answers(audit: OpenAudit, answers: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
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
