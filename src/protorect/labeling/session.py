"""A labeling session: pictures, classes, acts, and what every act changes in all other pictures."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from protorect._utils.memory import without_garbage_collection
from protorect.embedding.cache import FeatureCache, cache_folder
from protorect.images.find import PictureSource
from protorect.images.stored import PathLike
from protorect.labeling.background import BackgroundEmbedding
from protorect.labeling.examples import Examples, ExampleSource
from protorect.labeling.exporting import export_session
from protorect.labeling.notebook import session_html
from protorect.labeling.opening import Opened, Options, open_project
from protorect.labeling.project import write_writer
from protorect.labeling.records import Event, Exported, Groups
from protorect.labeling.session_audits import SessionAudits
from protorect.labeling.session_pictures import SessionPictures
from protorect.uncertainty.thresholds import Thresholds


class LabelingSession(SessionAudits, SessionPictures):
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
        folder = cache_folder(cache)  # an error before anything is written
        with without_garbage_collection():  # a quarter of the time, for 100,000 pictures
            opened = open_project(Path(project), pictures, examples, options)
        return cls(opened, FeatureCache(folder), address)

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
        self._address = address
        write_writer(self._engine.project.home, address)

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

    def _report_progress(self) -> None:
        with self._engine.lock:  # so that none follows the last one, which the engine publishes
            revision = self._engine.journal.revision
            self._engine.publish(Event("progress", revision, self._progress))

    def _embedding_ended(self) -> None:
        self._engine.end_embedding()
        self._report_progress()
