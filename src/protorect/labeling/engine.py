"""The state of a session: acts change it in their order, a thread keeps the answers up to date.

An act is planned, written to the journal, applied and scored under one lock. Calibrated
probabilities, and pictures that were embedded meanwhile, follow from a background thread; what it
computed for a revision that has passed is discarded, so that timing never decides.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.errors import ConflictError, DataError, ProtorectError
from protorect.labeling.act_journal import ActJournal
from protorect.labeling.acts import ACTS, LabelState, Patch
from protorect.labeling.answers import Answers, LabelingTask, calibrate, rescore
from protorect.labeling.audit import Audits
from protorect.labeling.change_log import ChangeLog, LoggedAct
from protorect.labeling.picture_rows import PictureRows
from protorect.labeling.picture_store import PictureStore
from protorect.labeling.project import CHANGES, ROWS, Project
from protorect.labeling.records import Changes, Event
from protorect.labeling.view import Read, View

_FIRST_JOIN, _GROWTH = 48, 1.5  # pictures join when there are so many, then so many times as many
_EVENTS = 1000  # kept for a page that was disconnected
_SECONDS_BETWEEN_TRIALS = 1.0  # after the thread has failed
_PATIENCE = 0.2  # seconds between two looks at how many pictures are embedded


class Engine:
    """Acts, answers and events of one open project."""

    def __init__(
        self,
        project: Project,
        journal: ActJournal,
        records: list[dict[str, Any]],
        store: PictureStore,
        writable: bool,
    ) -> None:
        self.project, self.journal, self.store = project, journal, store
        self.thresholds, self.method = project.settings.thresholds, project.settings.method
        self.lock = threading.RLock()
        self.state = LabelState(len(project.pictures))
        self.audits = Audits()
        self.answered: dict[str, int] = {}  # acts by the name that their caller gave
        self.log = ChangeLog(project.home / CHANGES, writable)
        self.last_act = 0
        self.problem = ""  # why the answers of the thread are late, if they are
        self.embedding_done = threading.Event()
        self._writable, self._closed = writable, False
        self._announced = True  # whether the listeners know what the thread has done
        self._events: deque[Event] = deque(maxlen=_EVENTS)
        self._listeners: list[Callable[[Event], None]] = []
        self._changed = threading.Condition(self.lock)
        self._read: Read | None = None
        for number, record in enumerate(records, 1):
            with journal.naming_line(number):
                is_act = record["kind"] in ACTS
                self._apply(record, number, self.state.plan(record) if is_act else None)
        rows = PictureRows.load(project.home / ROWS, store)
        self._rows_are_saved = rows is not None
        self.rows = rows or PictureRows.of(store, len(store))
        self.answers = Answers.none(len(self.rows.ids))
        self._rescore()
        self.view = self._new_view(self._last_changes())
        self._thread = threading.Thread(target=self._work, name="protorect-answers", daemon=True)

    def start(self) -> None:
        """Start the thread that keeps the answers up to date."""
        self._thread.start()

    def act(
        self, act: dict[str, Any], act_id: str | None = None, revision: int | None = None
    ) -> LoggedAct:
        """Carry out an act; what it changed.

        The same `act_id` again gives the first answer again. `revision` is the one that the caller
        has seen: ConflictError if somebody has labeled one of the pictures since.
        """
        with self.lock:
            if act_id is not None and act_id in self.answered:
                number = self.answered[act_id]  # without its changes if they are not known any more
                return self.log.get(number) or LoggedAct(
                    number, "repeated", None, (), Changes.none()
                )
            patch = self.state.plan(act)
            self._check_revision(patch.ids, revision)
            record = act if act_id is None else act | {"act_id": act_id}
            number = self.journal.append(record)
            self._apply(record, number, patch)
            if len(patch.ids):
                self._rescore()
            after = self._new_view(Changes.none())
            changes = self.view.changes_to(after, patch.ids)
            self.view = replace(after, last=changes)
            done = LoggedAct(number, patch.kind, patch.label, tuple(patch.ids.tolist()), changes)
            self.log.add(done)
            self._changed.notify_all()
            return done

    def note(self, record: dict[str, Any]) -> None:
        """Write a record that changes no label."""
        with self.lock:
            self._apply(record, self.journal.append(record))
            self.view = self._new_view(self.view.last)

    def publish(self, event: Event) -> None:
        """Keep an event and call the listeners."""
        with self.lock:
            if event.kind != "progress":
                self._events.append(event)
            listeners = list(self._listeners)
        for listener in listeners:
            listener(event)

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call a function at every event, until the returned function is called."""
        with self.lock:
            self._listeners.append(listener)

        def unsubscribe() -> None:
            with self.lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return unsubscribe

    def events_since(self, revision: int) -> list[Event] | None:
        """The events after a revision, None if they are not all known any more."""
        with self.lock:
            known = [one for one in self._events if one.revision > revision]
            changes = {one.revision for one in known if one.kind == "change"}
            missed = set(range(revision + 1, self.journal.revision + 1)) - changes
            silent = self.audits.notes
            return known if revision <= self.journal.revision and missed <= silent else None

    def end_embedding(self) -> None:
        """Say that no further picture will be embedded, also to those who wait for it."""
        with self._changed:
            self.embedding_done.set()
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all is embedded and calibrated; whether that was reached in time."""
        with self._changed:
            return self._changed.wait_for(self._is_settled, timeout)

    def close(self) -> None:
        """End the thread, and keep the rows for the next session."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        if self._writable and not self._rows_are_saved and self.rows.count == len(self.store) > 0:
            with suppress(DataError):  # a full disk: they are computed again
                self.rows.save(self.project.home / ROWS, self.store)
        self.journal.close()

    @property
    def all_joined(self) -> bool:
        """Whether everything is embedded and in use."""
        return self.embedding_done.is_set() and self.rows.count == len(self.store)

    def _is_settled(self) -> bool:
        return self._closed or (self.all_joined and self.answers.calibrated and self._announced)

    def _apply(self, record: dict[str, Any], number: int, patch: Patch | None = None) -> None:
        """Take a record of the journal into account; `patch` is what it changes if it is an act."""
        if patch is not None:
            self.state.apply(patch, number)
            self.last_act = number
            if "act_id" in record:
                self.answered[record["act_id"]] = number
        self.audits.apply(record, number)

    def _check_revision(self, ids: NDArray[np.int64], revision: int | None) -> None:
        if revision is None or not len(ids):
            return
        since = ids[self.state.touched[ids] > revision]
        if len(since):
            more = f" and {len(since) - 1} more" if len(since) > 1 else ""
            raise ConflictError(
                f"picture {since[0]}{more} was labeled by somebody else since; look again."
            )

    def _last_changes(self) -> Changes:
        logged = self.log.get(self.last_act)
        n = len(self.project.pictures)
        if logged is None or (len(logged.changes.ids) and logged.changes.ids.max() >= n):
            return Changes.none()
        return logged.changes

    def _new_view(self, last: Changes) -> View:
        if self._read is None or self._read.count != len(self.store):
            self._read = Read.of(self.project.pictures, self.store)
        made_of = self._read, self.rows, self.answers, self.thresholds
        return View.of(self.journal.revision, self.state, *made_of, last)

    def _rescore(self) -> None:
        task = LabelingTask.of(self.rows, self.state, self.method)
        if task is None:
            self.answers = Answers.none(len(self.rows.ids))
        else:
            self.answers = rescore(task, self.answers)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._is_due(), _PATIENCE)
                if self._closed:
                    return
                count, task = self._count_to_join(), None
                revision, answers = self.journal.revision, self.answers
                if not count and not answers.calibrated:
                    task = LabelingTask.of(self.rows, self.state, self.method)
            try:
                if count:
                    self._join(count)
                elif task is not None:
                    for better in calibrate(task, answers):
                        if not self._use_calibrated(better, answers, revision):
                            break  # an act has passed it; the next round calibrates that
                        answers = better
                self.problem = ""
            except (ProtorectError, OSError, MemoryError) as error:  # such as a full disk
                self.problem = f"answers are late, and are computed again: {error}"
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, _SECONDS_BETWEEN_TRIALS)

    def _is_due(self) -> bool:
        return bool(self._count_to_join()) or not self.answers.calibrated

    def _count_to_join(self) -> int:
        """How many records of the store should be used; 0 if those in use are enough for now."""
        count = len(self.store)
        enough = max(_FIRST_JOIN, _GROWTH * self.rows.count)
        due = count > self.rows.count and (count >= enough or self.embedding_done.is_set())
        return count if due else 0

    def _join(self, count: int) -> None:
        """Use the pictures that were embedded meanwhile."""
        rows = PictureRows.of(self.store, count)
        with self._changed:
            if self._writable:
                self.journal.append({"kind": "join", "pictures": count}, durable=False)
            self.rows, self._rows_are_saved = rows, False
            self.answers = Answers.none(len(rows.ids))
            self._rescore()
            self.view = self._new_view(self.view.last)
            revision, self._announced = self.journal.revision, False
        data: dict[str, Any] = {"revision": revision, "act": None, "kind": "join"}
        data |= {"ids": [], "changed": [], "summary": []}
        self._announce(Event("change", revision, data))
        if self.all_joined:
            self.publish(Event("progress", revision, None))

    def _use_calibrated(self, calibrated: Answers, answers: Answers, revision: int) -> bool:
        """Use better answers instead of these; False if these are in use no more."""
        with self._changed:
            if self._closed or self.answers is not answers:
                return False
            self.answers = calibrated
            self.view = self._new_view(self.view.last)
            self._announced = False
        self._announce(Event("probabilities", revision, {"revision": revision}))
        return True

    def _announce(self, event: Event) -> None:
        """Publish an event of the thread; `wait` returns after it."""
        self.publish(event)
        with self._changed:
            self._announced = True
            self._changed.notify_all()
