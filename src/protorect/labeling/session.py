"""A labeling session: pictures, classes, acts, and what every act changes in all other pictures."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from protorect._utils.memory import without_garbage_collection
from protorect.embedding.cache import FeatureCache, cache_folder
from protorect.errors import OptionError
from protorect.images.find import PictureSource
from protorect.images.stored import PathLike
from protorect.labeling.audit import checked_answers
from protorect.labeling.background import BackgroundEmbedding
from protorect.labeling.change_log import LoggedAct
from protorect.labeling.class_names import checked_class_name
from protorect.labeling.examples import Examples, ExampleSource
from protorect.labeling.exporting import export_session
from protorect.labeling.notebook import session_html
from protorect.labeling.opening import Opened, Options, open_project
from protorect.labeling.prediction import UNKNOWN, UNSURE
from protorect.labeling.project import write_writer
from protorect.labeling.records import ActResult, Audit, AuditEstimate, Event, Exported
from protorect.labeling.session_pictures import SessionPictures
from protorect.uncertainty.thresholds import Thresholds

Ids = Iterable[int]


class LabelingSession(SessionPictures):
    """Label pictures with a method that relabels all others after every act.

    Make one by `open`, and use it in a `with` block. Pictures are known by their numbers, from 0 in
    the order of the project's list. Several threads may use a session.

    Every act takes `act_id`, a name of the caller's: given again, it has the first answer again;
    and `revision`, the one that the caller has seen: ConflictError if one of the pictures was
    labeled since. When an act returns, it is on disk.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> import protorect
    >>> scratch = tempfile.TemporaryDirectory()
    >>> folder = Path(scratch.name) / "pictures"
    >>> folder.mkdir()
    >>> for name in ("blue", "red"):
    ...     for number in range(3):
    ...         Image.new("RGB", (32 + number, 32), name).save(folder / f"{name}{number}.png")
    >>> project = Path(scratch.name) / "project"
    >>> session = protorect.LabelingSession.open(project, folder, cache=False)
    >>> session.wait()
    True
    >>> _ = session.label([0], "blue")
    >>> print(session.label([3], "red"))
    4 pictures changed: 2 none -> blue, 2 none -> red
    >>> [picture.label for picture in session.pictures(order="name").pictures]
    ['blue', 'blue', 'blue', 'red', 'red', 'red']
    >>> session.undo().state.redo
    1
    >>> session.close()
    >>> scratch.cleanup()
    """

    def __init__(self, opened: Opened, cache: FeatureCache) -> None:
        self._engine, self._held, self._cache = opened.engine, opened.held, cache
        self._notices, self._groups = tuple(opened.notices), None
        self._embedding = BackgroundEmbedding(
            opened.missing,
            self._engine.project.pictures,
            opened.embedder,
            self._engine.store,
            cache,
            self._report_progress,
            self._embedding_ended,
        )
        self._engine.start()
        self._embedding.start()

    @classmethod
    def open(
        cls,
        project: PathLike,
        pictures: PictureSource | None = None,
        examples: ExampleSource | Examples | None = None,
        *,
        source: PathLike | None = None,
        method: str | None = None,
        thresholds: Thresholds | None = None,
        cache: PathLike | bool = True,
        precision: str = "auto",
        device: str = "cpu",
        read_only: bool = False,
        address: str = "",
    ) -> Self:
        """Open a project, or make a new one; pictures are embedded in the background.

        Parameters
        ----------
        project
            The folder of the project, or one that `protorect sort` made.
        pictures
            A folder, a pattern, a list file, a picture, or several of those; needed for a new one.
        examples
            A folder of class folders, a CSV file with path and label, or lists of pictures by
            label. They become pictures of the project.
        source, method, thresholds
            The network, the method and when a picture is set aside; None for what the project has,
            or for the defaults.
        cache
            The folder where features and thumbnails are cached; True for the user's cache folder.
        precision, device
            How the network computes.
        read_only
            Any number of sessions may read a project while one writes to it.
        address
            Where the session can be reached, for the message to a second one.
        """
        options = Options(source, method, thresholds, precision, device, read_only, address)
        folder = cache_folder(cache)  # an error before anything is written
        with without_garbage_collection():  # a quarter of the time, for 100,000 pictures
            opened = open_project(Path(project), pictures, examples, options)
        return cls(opened, FeatureCache(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the background work and release the project."""
        self._embedding.stop()
        self._engine.close()
        self._cache.__exit__()
        self._held.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every picture is embedded and probabilities are calibrated."""
        return self._engine.wait(timeout)

    @property
    def path(self) -> Path:
        """The folder of the project."""
        return self._engine.project.root

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know: pictures added or gone, work that has failed."""
        problems = self._embedding.problem, self._engine.problem
        return (*self._notices, *filter(None, problems))

    def set_address(self, address: str) -> None:
        """Say where the session can be reached."""
        write_writer(self._engine.project.home, address)

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

    def audit(self, n: int = 50) -> Audit:
        """Draw a random sample of the labeled pictures, to be checked by a person.

        As long as no label changes, an audit that is not finished goes on, with its answers; a
        larger n extends its sample.
        """
        engine = self._engine
        with engine.lock:
            if record := engine.audits.record_for(n, engine.view, engine.journal.revision):
                engine.note(record)
            begun = engine.audits.latest()
            return Audit(
                begun.number,
                engine.view.revision,
                begun.population,
                engine.view.records(np.array(list(begun.labels), np.int64)),
                tuple(begun.answers.values()),
                begun.estimate(),
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
            begun, act_id = engine.audits.get(audit), options.get("act_id")
            if act_id in engine.answered:
                return begun.estimate(self._result(engine.act({"kind": "audit"}, act_id)))
            if checked := checked_answers(begun, answers):
                engine.note({"kind": "answer_audit", "audit": audit, "answers": checked})
            if not finish:
                return begun.estimate()
            record = {"kind": "audit", "audit": audit, "labels": begun.corrections()}
            return begun.estimate(self._act(record, options))

    def export(
        self,
        format: str,  # noqa: A002
        path: PathLike | None = None,
        *,
        include: str = "all",
        min_probability: float | None = None,
        **options: Any,
    ) -> Exported:
        """Write the labels in one of the formats of `protorect.labeling.exports`.

        Parameters
        ----------
        format
            Such as csv, folders or huggingface.
        path
            Where to; None for the folder `exports` of the project.
        include
            "all" that have a label, those "checked" by a person, or "from": checked ones and those
            of at least `min_probability`.
        options
            Those of the format.
        """
        return export_session(
            self._engine, format, path, include=include, minimum=min_probability, options=options
        )

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call a function at every event, from any thread, until the returned one is called."""
        return self._engine.subscribe(listener)

    def events_since(self, revision: int) -> list[Event] | None:
        """The events after a revision; None if they are not known any more."""
        return self._engine.events_since(revision)

    def _repr_html_(self) -> str:
        return session_html(self)

    def __repr__(self) -> str:
        state = self.state()
        return (
            f"LabelingSession({os.fspath(self.path)!r}: {state.pictures} pictures, "
            f"{len(state.classes)} classes, revision {state.revision})"
        )

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
        with self._engine.lock:  # so that the same request at the same time is a repeated one
            repeated = act_id in self._engine.answered
            done = self._engine.act(act, **options)
        result = self._result(done)
        if not repeated:
            self._engine.publish(Event("change", result.revision, result.event()))
        return result

    def _result(self, done: LoggedAct) -> ActResult:
        fields = done.act, done.act, done.kind, done.label, done.ids, done.changes
        return ActResult(*fields, self.state())

    def _report_progress(self) -> None:
        with self._engine.lock:  # so that none follows the last one, which the engine publishes
            revision = self._engine.journal.revision
            self._engine.publish(Event("progress", revision, self._progress))

    def _embedding_ended(self) -> None:
        self._engine.end_embedding()
        self._report_progress()
