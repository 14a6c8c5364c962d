"""Audits of a labeling session: a random sample of the labels, checked by a person."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from protorect.labeling import audit as audits
from protorect.labeling.records import Audit, AuditEstimate
from protorect.labeling.session_acts import SessionActs


class SessionAudits(SessionActs):
    """The part of a session that estimates the accuracy of its labels."""

    def audit(self, n: int = 50) -> Audit:
        """Draw a random sample of the labeled pictures, to be checked by a person.

        As long as no label changes, an audit that is not finished goes on, with its answers; a
        larger n extends its sample.
        """
        audits.check_size(n)
        engine = self._engine
        with engine.lock:
            revision = engine.journal.revision
            begun = engine.audits.going_on(revision)
            if begun is None or (n < len(begun.labels) and not begun.answers):
                begun = engine.audits.get(engine.note(audits.beginning(engine.view, n, revision)))
            elif len(begun.labels) < min(n, begun.population):
                engine.note(audits.extension(engine.view, n, begun))
            view, ids = engine.view, np.array(list(begun.labels), np.int64)
            sample, answers = view.records(ids), tuple(begun.answers.values())
            return Audit(
                begun.number, view.revision, begun.population, sample, answers, begun.estimate()
            )

    def answer_audit(
        self,
        audit: int,
        answers: Iterable[Mapping[str, Any]],
        *,
        finish: bool = False,
        **options: Any,
    ) -> AuditEstimate:
        """Save answers to an audit; at `finish`, its corrections become one act.

        An answer has `id`, `right`, and for a wrong one `label` or `unknown`. The accuracy is that
        of the labels when the audit began.
        """
        engine = self._engine
        with engine.lock:
            begun = engine.audits.get(audit)
            act_id = options.get("act_id")
            if act_id is not None and act_id in engine.answered:
                done = self._result(engine.act({"kind": "audit"}, act_id))
                return AuditEstimate(**begun.estimate().__dict__ | {"act": done})
            checked = audits.checked_answers(begun, engine.state, answers)
            if checked:
                engine.note({"kind": "answer_audit", "audit": audit, "answers": checked})
            act = None
            if finish:
                corrections = begun.corrections()
                record = {"kind": "audit", "audit": audit, "labels": corrections}
                act = self._act(record, options)
                begun.finished = True
            return AuditEstimate(**begun.estimate().__dict__ | {"act": act})
