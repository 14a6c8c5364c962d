"""A labeling session: pictures, classes, acts, and what every act changes in all other pictures."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from protorect.embedding.cache import FeatureCache, cache_folder
from protorect.errors import DataError, NotFoundError, OptionError
from protorect.images.find import PictureSource
from protorect.images.stored import PathLike, UnreadableError
from protorect.images.thumbnail import browser_picture
from protorect.labeling import audit as audits
from protorect.labeling.background import BackgroundEmbedding
from protorect.labeling.examples import Examples, ExampleSource
from protorect.labeling.exporting import export_session, predictions_of
from protorect.labeling.groups import cluster
from protorect.labeling.listing import select, suggestions
from protorect.labeling.notebook import session_html
from protorect.labeling.opening import Opened, Options, open_project
from protorect.labeling.predictions import Predictions
from protorect.labeling.project import write_writer
from protorect.labeling.records import (
    Audit,
    AuditEstimate,
    Estimate,
    Event,
    Exported,
    Groups,
    IdPage,
    PicturePage,
)
from protorect.labeling.session_acts import SessionActs
from protorect.labeling.session_state import estimate_of
from protorect.labeling.thumbnails import cached_thumbnail
from protorect.uncertainty.thresholds import Thresholds


class LabelingSession(SessionActs):
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

    def __init__(self, opened: Opened, cache: FeatureCache, address: str = "") -> None:
        self._engine, self._held, self._cache = opened.engine, opened.held, cache
        self._address = address
        self._notices = tuple(opened.notices)
        self._groups: Groups | None = None
        engine = self._engine
        self._embedding = BackgroundEmbedding(
            opened.missing,
            engine.project.pictures,
            opened.embedder,
            engine.store,
            cache,
            self._report_progress,
            self._embedding_ended,
        )
        engine.start()
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
        opened = open_project(Path(project), pictures, examples, options)
        return cls(opened, FeatureCache(cache_folder(cache)), address)

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
        """What a person should know: pictures added or gone, a line of the journal dropped."""
        problem = self._embedding.problem
        return (*self._notices, *([problem] if problem else []))

    def set_address(self, address: str) -> None:
        """Say where the session can be reached."""
        self._address = address
        write_writer(self._engine.project.home, address)

    @property
    def expected_accuracy(self) -> Estimate | None:
        """The share of labels that are right, as far as the probabilities say, with an interval."""
        return estimate_of(self._engine.view, self._engine.state)

    def pictures(self, *, offset: int = 0, limit: int = 100, **filters: Any) -> PicturePage:
        """Some of the pictures, in an order.

        Parameters
        ----------
        offset, limit
            Which part of the list.
        filters
            label: a class, `_unsure` or `_unknown`; status: some of example, accepted, proposed,
            unsure, unknown; order: sure, unsure, useful or name; search: a part of the name;
            similar: the picture that others are compared with; act: only what that act changed;
            ids: these pictures, at most 500.
        """
        for name, value in (("offset", offset), ("limit", limit)):
            if type(value) is not int or value < 0:
                raise OptionError(f"{name} is {value!r}; it must be a whole number from 0 up.")
        chosen = self._select(filters)
        view = self._engine.view
        page = view.records(chosen[offset : offset + limit])
        return PicturePage(view.revision, len(chosen), page)

    def picture_ids(self, **filters: Any) -> IdPage:
        """The numbers of all pictures that `pictures` with these filters has."""
        chosen = self._select(filters)
        return IdPage(self._engine.view.revision, len(chosen), tuple(chosen.tolist()))

    def similar(self, picture: int, n: int = 20, **filters: Any) -> PicturePage:
        """The pictures most similar to one."""
        return self.pictures(similar=picture, limit=n, **filters)

    def suggest(self, n: int = 20, offset: int = 0) -> PicturePage:
        """The pictures whose labels would help most; without examples a diverse choice."""
        view = self._engine.view
        chosen = suggestions(view, offset + n)
        return PicturePage(view.revision, len(chosen), view.records(chosen[offset:]))

    def groups(self, n: int = 20) -> Groups:
        """Clusters of the pictures that fit no class, the largest first."""
        groups = self._all_groups()
        return Groups(groups.revision, groups.groups[:n], groups.single)

    def group(self, number: int) -> tuple[int, ...]:
        """All pictures of a group."""
        for one in self._all_groups().groups:
            if one.id == number:
                return one.ids
        raise NotFoundError(f"there is no group {number!r}; ask for the groups again.")

    def thumbnail(self, picture: int) -> bytes:
        """A small copy of a picture as WebP; DataError if it cannot be read."""
        read, stored = self._file(picture)
        try:
            content = read.content(picture)
            if not content:  # not embedded yet
                return cached_thumbnail(FeatureCache(None), stored, content).data
            return cached_thumbnail(self._cache, stored, content).data
        except UnreadableError as error:
            raise DataError(f"picture {picture} cannot be read: {error}.") from error

    def picture(self, picture: int) -> tuple[bytes, str]:
        """A picture and its media type, as browsers show it; DataError if it cannot be read."""
        try:
            return browser_picture(self._file(picture)[1].read())
        except UnreadableError as error:
            raise DataError(f"picture {picture} cannot be read: {error}.") from error

    @property
    def predictions(self) -> Predictions:
        """The labels of all embedded pictures."""
        return predictions_of(self._engine.view, self._engine.method or "")

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

    def _select(self, filters: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
        engine, act = self._engine, filters.pop("act", None)
        if act is not None:
            logged = engine.log.get(act)
            if logged is None:
                raise NotFoundError(f"what act {act!r} changed is not known any more.")
            filters["changed"] = logged.changes.ids
        return select(engine.view, engine.state, **filters)

    def _all_groups(self) -> Groups:
        view = self._engine.view
        if self._groups is None or self._groups.revision != view.revision:
            self._groups = cluster(view)
        return self._groups

    def _file(self, picture: int) -> Any:
        self._ids([picture])
        read = self._engine.view.read
        return read, read.listed[picture].stored()

    def _report_progress(self) -> None:
        revision = self._engine.journal.revision
        self._engine.publish(Event("progress", revision, self._embedding.progress))

    def _embedding_ended(self) -> None:
        self._engine.embedding_done.set()
        self._report_progress()
