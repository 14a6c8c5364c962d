"""What a labeling session shows: pictures in an order, suggestions, groups, images."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.embedding.cache import FeatureCache
from protorect.errors import DataError, NotFoundError, OptionError
from protorect.images.stored import StoredPicture, UnreadableError
from protorect.images.thumbnail import browser_picture
from protorect.labeling.engine import Engine
from protorect.labeling.exporting import predictions_of
from protorect.labeling.groups import cluster
from protorect.labeling.listing import select, suggestions
from protorect.labeling.predictions import Predictions
from protorect.labeling.records import Estimate, Groups, IdPage, PicturePage
from protorect.labeling.session_state import estimate_of
from protorect.labeling.thumbnails import cached_thumbnail
from protorect.labeling.view import Read


class SessionPictures:
    """The part of a session that shows pictures and changes nothing."""

    _engine: Engine
    _cache: FeatureCache
    _groups: Groups | None

    @property
    def expected_accuracy(self) -> Estimate | None:
        """The share of labels that are right, as far as the probabilities say, with an interval."""
        return estimate_of(self._engine.view, self._engine.state)

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

    def _file(self, picture: int) -> tuple[Read, StoredPicture]:
        self._engine.state.checked_ids([picture])
        read = self._engine.view.read
        return read, read.listed[picture].stored()


def _check_counts(**counts: Any) -> None:
    """Raise OptionError for what is no number of pictures."""
    for name, value in counts.items():
        if type(value) is not int or value < 0:
            raise OptionError(f"{name} is {value!r}; it must be a whole number from 0 up.")
