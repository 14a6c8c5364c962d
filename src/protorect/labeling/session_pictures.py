"""What a labeling session shows: its state, pictures in an order, suggestions, groups, images."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.embedding.cache import FeatureCache
from protorect.errors import DataError, NotFoundError, OptionError
from protorect.images.stored import StoredPicture, UnreadableError
from protorect.images.thumbnail import browser_picture
from protorect.labeling.background import BackgroundEmbedding
from protorect.labeling.engine import Engine
from protorect.labeling.exporting import predictions_of
from protorect.labeling.groups import cluster
from protorect.labeling.listing import select, suggestions
from protorect.labeling.predictions import Predictions
from protorect.labeling.records import (
    PROPOSED,
    UNKNOWN_STATUS,
    UNSURE_STATUS,
    Estimate,
    Groups,
    IdPage,
    PicturePage,
    State,
    summary_json,
)
from protorect.labeling.thumbnails import cached_thumbnail
from protorect.uncertainty.expected_accuracy import expected_accuracy


class SessionPictures:
    """The part of a session that shows pictures and changes nothing."""

    _engine: Engine
    _embedding: BackgroundEmbedding
    _cache: FeatureCache
    _groups: Groups | None

    def state(self) -> State:
        """Classes with their counts, progress, and what the last act was."""
        with self._engine.lock:
            view, state, read = self._engine.view, self._engine.state, self._engine.view.read
            logged, last = self._engine.log.get(self._engine.last_act), None
            if logged is not None:
                last = {
                    "act": logged.act,
                    "kind": logged.kind,
                    "count": len(logged.ids),
                    "label": logged.label,
                    "summary": summary_json(logged.changes),
                }
            return State(
                classes=view.class_infos(),
                pictures=view.pictures,
                embedded=int(((read.position >= 0) & ~read.unreadable).sum()),
                unreadable=int(read.unreadable.sum()),
                unsure=int((view.status == UNSURE_STATUS).sum()),
                unknown=int((view.status == UNKNOWN_STATUS).sum()),
                expected_accuracy=self.expected_accuracy,
                revision=view.revision,
                act=self._engine.last_act,
                last=last,
                undo=len(state.undo),
                redo=len(state.redo),
                progress=self._progress,
            )

    @property
    def expected_accuracy(self) -> Estimate | None:
        """The share of labels that are right, as far as the probabilities say, with an interval."""
        view = self._engine.view
        if not len(view.answers.ways) or not view.answers.was_calibrated:
            return None  # nothing is proposed, or its probabilities say nothing yet
        proposed = view.labeled & (view.status == PROPOSED)
        checked = int(view.labeled.sum()) - int(proposed.sum())
        examples = int((self._engine.state.label >= 0).sum())
        estimate = expected_accuracy(view.probability[proposed], checked, examples)
        return None if estimate is None else Estimate(*estimate)

    @property
    def _progress(self) -> dict[str, Any] | None:
        """How far embedding is; None when the last picture has joined the others."""
        return None if self._engine.all_joined else self._embedding.progress

    @property
    def predictions(self) -> Predictions:
        """The labels of all embedded pictures."""
        return predictions_of(self._engine.view, self._engine.method or "")

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
        _check_counts(offset=offset, limit=limit)
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
        _check_counts(n=n, offset=offset)
        view = self._engine.view
        chosen = suggestions(view, offset + n)
        return PicturePage(view.revision, len(chosen), view.records(chosen[offset:]))

    def groups(self, n: int = 20) -> Groups:
        """Clusters of the pictures that fit no class, the largest first."""
        _check_counts(n=n)
        groups = self._all_groups()
        return replace(groups, groups=groups.groups[:n])

    def group(self, number: int) -> tuple[int, ...]:
        """All pictures of a group."""
        for one in self._all_groups().groups:
            if one.id == number:
                return one.ids
        raise NotFoundError(f"there is no group {number!r}; ask for the groups again.")

    def thumbnail(self, picture: int) -> bytes:
        """A small copy of a picture as WebP; DataError if it cannot be read."""
        stored = self._file(picture)
        content = self._engine.view.read.content(picture)
        cache = self._cache if content else FeatureCache(None)  # it is not embedded yet
        with _readable(picture):
            return cached_thumbnail(cache, stored, content).data

    def picture(self, picture: int) -> tuple[bytes, str]:
        """A picture and its media type, as browsers show it; DataError if it cannot be read."""
        stored = self._file(picture)
        with _readable(picture):
            return browser_picture(stored.read())

    def _select(self, filters: dict[str, Any]) -> NDArray[np.int64]:
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

    def _file(self, picture: int) -> StoredPicture:
        self._engine.state.checked_ids([picture])
        return self._engine.view.read.listed[picture].stored()


@contextmanager
def _readable(picture: int) -> Iterator[None]:
    """DataError instead of UnreadableError."""
    try:
        yield
    except UnreadableError as error:
        raise DataError(f"picture {picture} cannot be read: {error}.") from error


def _check_counts(**counts: Any) -> None:
    """Raise OptionError for what is no number of pictures."""
    for name, value in counts.items():
        if type(value) is not int or value < 0:
            raise OptionError(f"{name} is {value!r}; it must be a whole number from 0 up.")
