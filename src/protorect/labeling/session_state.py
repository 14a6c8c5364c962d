"""The state of a session in numbers."""

from typing import Any

import numpy as np

from protorect.labeling.acts import LabelState
from protorect.labeling.engine import Engine
from protorect.labeling.records import (
    PROPOSED,
    UNKNOWN_STATUS,
    UNSURE_STATUS,
    Estimate,
    State,
    summary_json,
)
from protorect.labeling.view import View
from protorect.uncertainty.expected_accuracy import expected_accuracy


def state_of(engine: Engine, progress: dict[str, Any] | None) -> State:
    """The state at the present revision."""
    with engine.lock:
        view, state = engine.view, engine.state
        logged, last = engine.log.get(engine.last_act), None
        if logged is not None:
            last = {
                "act": logged.act,
                "kind": logged.kind,
                "count": len(logged.ids),
                "label": logged.label,
                "summary": summary_json(logged.changes),
            }
        unreadable = int(view.read.unreadable.sum())
        return State(
            view.class_infos(),
            view.pictures,
            int((view.read.position >= 0).sum())
            - int((view.read.unreadable & (view.read.position >= 0)).sum()),
            unreadable,
            int((view.status == UNSURE_STATUS).sum()),
            int((view.status == UNKNOWN_STATUS).sum()),
            estimate_of(view, state),
            view.revision,
            engine.last_act,
            last,
            len(state.undo),
            len(state.redo),
            progress,
        )


def estimate_of(view: View, state: LabelState) -> Estimate | None:
    """The expected accuracy of all labels; None where nothing is proposed."""
    if not len(view.answers.ways):
        return None
    proposed = view.labeled & (view.status == PROPOSED)
    checked = int(view.labeled.sum()) - int(proposed.sum())
    examples = int((state.label >= 0).sum())
    estimate = expected_accuracy(np.asarray(view.probability[proposed]), checked, examples)
    return None if estimate is None else Estimate(*estimate)
