"""The acts of a labeling session: each is planned, written to the journal, and answered."""

from collections.abc import Iterable, Mapping
from typing import Any

from protorect.errors import OptionError
from protorect.labeling.background import BackgroundEmbedding
from protorect.labeling.change_log import LoggedAct
from protorect.labeling.class_names import checked_class_name
from protorect.labeling.engine import Engine
from protorect.labeling.prediction import UNKNOWN, UNSURE
from protorect.labeling.records import ActResult, Event, State
from protorect.labeling.session_state import state_of

Ids = Iterable[int]


class SessionActs:
    """The part of a session that changes labels and classes."""

    _engine: Engine
    _embedding: BackgroundEmbedding

    def label(self, ids: Ids, label: str | None, **options: Any) -> ActResult:
        """Give pictures a label, a new class if need be; None takes their label back."""
        if label is not None and label not in (UNKNOWN, UNSURE):
            label = checked_class_name(label)
        return self._act({"kind": "label", "labels": [[label, self._ids(ids)]]}, options)

    def label_each(self, labels: Mapping[int, str | None], **options: Any) -> ActResult:
        """Give each picture its own label, in one act."""
        by_name: dict[str | None, list[int]] = {}
        for picture, label in labels.items():
            by_name.setdefault(label, []).append(picture)
        pairs = [[label, self._ids(ids)] for label, ids in by_name.items()]
        return self._act({"kind": "label", "labels": pairs}, options)

    def unlabel(self, ids: Ids, **options: Any) -> ActResult:
        """Take the labels of pictures back."""
        return self.label(ids, None, **options)

    def mark_unknown(self, ids: Ids, **options: Any) -> ActResult:
        """Say that pictures are of none of the classes."""
        return self.label(ids, UNKNOWN, **options)

    def mark_unsure(self, ids: Ids, **options: Any) -> ActResult:
        """Put pictures aside."""
        return self.label(ids, UNSURE, **options)

    def accept(self, ids: Ids, **options: Any) -> ActResult:
        """Say that the proposed labels of pictures are right; labels that people gave stay."""
        with self._engine.lock:
            view, state = self._engine.view, self._engine.state
            by_name: dict[str, list[int]] = {}
            for picture in self._ids(ids):
                if state.label[picture] >= 0:
                    continue
                number = int(view.label[picture])
                if number < 0:
                    raise OptionError(f"picture {picture} has no proposed label; give it one.")
                by_name.setdefault(view.names[number], []).append(picture)
            return self._act(
                {"kind": "accept", "labels": list(map(list, by_name.items()))}, options
            )

    def add_class(
        self, name: str, ids: Ids = (), key: str | None = None, **options: Any
    ) -> ActResult:
        """Add a class, with these pictures as examples."""
        act = {"kind": "add_class", "name": name, "ids": self._ids(ids), "key": key}
        return self._act(act, options)

    def rename_class(self, name: str, new: str, **options: Any) -> ActResult:
        """Give a class another name."""
        return self._act({"kind": "rename_class", "name": name, "new": new}, options)

    def merge_classes(self, name: str, into: str, **options: Any) -> ActResult:
        """Make all pictures of a class pictures of another one, and remove it."""
        return self._act({"kind": "merge_classes", "name": name, "into": into}, options)

    def set_key(self, name: str, key: str | None, **options: Any) -> ActResult:
        """Set the digit that chooses a class; another class with this digit loses it."""
        return self._act({"kind": "set_key", "name": name, "key": key}, options)

    def move_class(self, name: str, position: int, **options: Any) -> ActResult:
        """Change the position of a class in the list, from 0."""
        return self._act({"kind": "move_class", "name": name, "position": position}, options)

    def remove_class(self, name: str, **options: Any) -> ActResult:
        """Remove a class; its pictures lose their label."""
        return self._act({"kind": "remove_class", "name": name}, options)

    def undo(self, **options: Any) -> ActResult:
        """Take the last act back; any number of times."""
        return self._act({"kind": "undo"}, options)

    def redo(self, **options: Any) -> ActResult:
        """Carry out again what was undone last."""
        return self._act({"kind": "redo"}, options)

    def state(self) -> State:
        """Classes with their counts, progress, and what the last act was."""
        return state_of(self._engine, self._progress)

    @property
    def _progress(self) -> dict[str, Any] | None:
        """How far embedding is; None when the last picture has joined the others."""
        return None if self._engine.all_joined else self._embedding.progress

    def _ids(self, ids: Ids) -> list[int]:
        return list(self._engine.state.checked_ids(ids).tolist())

    def _act(self, act: dict[str, Any], options: Mapping[str, Any]) -> ActResult:
        known = {"act_id", "revision"}
        if not set(options) <= known:
            raise TypeError(f"unexpected arguments: {', '.join(sorted(set(options) - known))}")
        act_id, revision = options.get("act_id"), options.get("revision")
        if act_id is not None and not isinstance(act_id, str):
            raise OptionError(f"act_id is {act_id!r}; it must be text.")
        if revision is not None and type(revision) is not int:
            raise OptionError(f"revision is {revision!r}; it must be a whole number.")
        repeated = act_id in self._engine.answered
        result = self._result(self._engine.act(act, **options))
        if not repeated:
            self._engine.publish(Event("change", result.revision, result.event()))
        return result

    def _result(self, done: LoggedAct) -> ActResult:
        fields = done.act, done.act, done.kind, done.label, done.ids, done.changes
        return ActResult(*fields, self.state())
