"""Few-shot episodes: seeded, leak-free, drawn all at once, saved and loaded.

An episode is rows of a feature table: a few labelled ones per class (the support) and unlabelled
ones (the queries). Episodes are data: the same file gives two programs the same tasks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protorect._utils.arrays import load_arrays, physical_memory, save_arrays
from protorect.errors import DataError, OptionError
from protorect.evaluation.draws import MANY, Ints, draw_distinct

DISTRACTOR = -1  # the class position of a query that belongs to none of the episode's classes
_BYTES_A_SAMPLE = 40  # at most, while episodes are drawn


@dataclass(frozen=True)
class Episodes:
    """Row numbers of many episodes of one shape.

    Parameters
    ----------
    support
        (episodes, way, shot), rows of the labelled samples.
    query
        (episodes, n_query), rows of the unlabelled ones, class after class, distractors last.
    query_way
        (episodes, n_query), position 0 .. way - 1 of each query's class in its episode, or
        `DISTRACTOR`. For scoring only: methods never see it.
    """

    support: Ints
    query: Ints
    query_way: Ints

    def __post_init__(self) -> None:
        for name in ("support", "query", "query_way"):
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in "iu":
                raise DataError(f"{name} must hold integers, it holds {given.dtype}.")
            object.__setattr__(self, name, given.astype(np.int64, copy=False))
        if self.support.ndim != 3 or self.query.ndim != 2 or 0 in self.support.shape[1:]:
            raise DataError(
                "episodes need support (episodes, way, shot) and query (episodes, n_query), "
                f"got {self.support.shape} and {self.query.shape}."
            )
        if self.query.shape != self.query_way.shape or len(self.query) != len(self.support):
            raise DataError(
                "support, query and query_way must describe the same episodes, got "
                f"{self.support.shape}, {self.query.shape} and {self.query_way.shape}."
            )
        if len(self) == 0 or not (self.query_way != DISTRACTOR).any(axis=1).all():
            raise DataError("every episode needs a query that belongs to one of its classes.")
        if self.query_way.min() < DISTRACTOR or self.query_way.max() >= self.way:
            raise DataError(f"query_way must lie in -1 .. {self.way - 1}, the classes' positions.")

    def __len__(self) -> int:
        return len(self.support)

    @property
    def way(self) -> int:
        """Number of classes in an episode."""
        return int(self.support.shape[1])

    @property
    def shot(self) -> int:
        """Number of support samples of each class."""
        return int(self.support.shape[2])

    @property
    def query_per_class(self) -> int:
        """Number of queries of each class, on average; distractors not counted."""
        return round(int((self.query_way != DISTRACTOR).sum()) / (len(self) * self.way))

    def with_shot(self, shot: int) -> Episodes:
        """The same episodes with only the first `shot` support samples of each class."""
        if not 1 <= shot <= self.shot:
            raise OptionError(f"these episodes have {self.shot} shots; {shot} cannot be taken.")
        return Episodes(self.support[:, :, :shot], self.query, self.query_way)

    def first(self, count: int) -> Episodes:
        """The first `count` of these episodes."""
        if not 1 <= count <= len(self):
            raise OptionError(f"there are {len(self)} episodes; the first {count} cannot be taken.")
        return Episodes(self.support[:count], self.query[:count], self.query_way[:count])

    def check_rows(self, n_rows: int) -> None:
        """Raise DataError if a row number lies outside a table of `n_rows` rows."""
        lowest = min(self.support.min(), self.query.min())
        highest = max(self.support.max(), self.query.max())
        if lowest < 0 or highest >= n_rows:
            raise DataError(
                f"these episodes use rows {lowest} .. {highest}, the features have {n_rows} rows: "
                "they were drawn from another feature file."
            )

    def check_labels(self, labels: NDArray[Any]) -> None:
        """Raise DataError if these episodes were not drawn from rows with these labels (n,)."""
        self.check_rows(len(labels))
        classes = np.unique(labels, return_inverse=True)[1]
        support = classes[self.support]  # (episodes, way, shot)
        own, query = support[:, :, 0], classes[self.query]
        told = np.take_along_axis(own, self.query_way.clip(min=0), axis=1)
        foreign = self.query_way == DISTRACTOR
        known = (query[:, :, None] == own[:, None, :]).any(axis=2) if foreign.any() else False
        agree = (
            (support == own[:, :, None]).all()
            and not _repeated(own)
            and (foreign | (query == told)).all()
            and not (foreign & known).any()
        )
        if not agree:
            raise DataError(
                "these episodes do not agree with the labels: they were drawn from other features, "
                "or from these in another order."
            )
        if _repeated(np.concatenate([self.support.reshape(len(self), -1), self.query], axis=1)):
            raise DataError("an episode has the same row twice: its queries are not new to it.")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with support, query and query_way."""
        save_arrays(path, support=self.support, query=self.query, query_way=self.query_way)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Episodes:
        """Read what `save`, or another program that keeps to the format, wrote."""
        arrays = load_arrays(path, required=("support", "query", "query_way"))
        try:
            return cls(**arrays)
        except DataError as error:
            raise DataError(f"{Path(path)}: {error}") from error


def sample_episodes(
    labels: ArrayLike,
    *,
    way: int = 5,
    shot: int = 1,
    query: int = 15,
    episodes: int = 600,
    seed: int = 0,
    dirichlet: float | None = None,
    distractors: int = 0,
) -> Episodes:
    """Draw episodes from labelled rows; support and queries never share a row.

    The queries are drawn before the support, so that with equal classes a smaller `shot` gives
    the same episodes with fewer support samples.

    Parameters
    ----------
    labels
        (n,), the class of every row: numbers or strings.
    way, shot, query
        Classes in an episode, support samples and queries of each.
    episodes
        How many.
    seed
        The same seed gives the same episodes.
    dirichlet
        If given, the way x query queries are shared out among the classes in proportions drawn
        from a Dirichlet distribution with this alpha, as far as the classes have samples.
    distractors
        Further classes with `query` samples each that belong to none of the episode's classes.
    """
    _check_counts(at_least=2, way=way)
    _check_counts(at_least=1, shot=shot, query=query, episodes=episodes)
    _check_counts(at_least=0, distractors=distractors, seed=seed)
    if dirichlet is not None and not (isinstance(dirichlet, Real) and 0 < dirichlet <= 1e6):
        raise OptionError(f"dirichlet is {dirichlet!r}; it must be above 0, and 1e6 at most.")
    names, rows, starts, sizes = _rows_by_class(np.asarray(labels))
    _check_enough(names, sizes, way + distractors, shot, query)
    _check_memory(episodes * (way + distractors) * (shot + query))

    rng = np.random.default_rng(seed)
    everyone = np.full(episodes, len(names))
    classes = draw_distinct(rng, everyone, way + distractors)  # (episodes, way + distractors)
    counts = np.full(classes.shape, query)  # queries of each class
    if dirichlet is not None:
        proportions = rng.dirichlet(np.full(way, dirichlet), size=episodes)
        counts[:, :way] = _shared_out(proportions, way * query, sizes[classes[:, :way]] - shot)

    most = int(counts.max())
    drawn = draw_distinct(rng, sizes[classes.ravel()], most + shot, shuffle=most > MANY)
    drawn = drawn.reshape(*classes.shape, most + shot) + starts[classes][..., None]
    # Of its draws, a class gives the first ones to the queries and the next ones to the support.
    asked = np.arange(most) < counts[..., None]  # (episodes, way + distractors, most)
    behind = counts[:, :way, None] + np.arange(shot)  # (episodes, way, shot)
    positions = np.append(np.arange(way), np.full(distractors, DISTRACTOR))
    return Episodes(
        support=rows[np.take_along_axis(drawn[:, :way], behind, axis=-1)],
        query=rows[drawn[..., :most][asked]].reshape(episodes, -1),
        query_way=np.broadcast_to(positions[:, None], asked.shape)[asked].reshape(episodes, -1),
    )


def _check_counts(at_least: int, **counts: int) -> None:
    for name, count in counts.items():
        if not isinstance(count, Integral) or count < at_least:
            raise OptionError(f"{name} is {count!r}; it must be a whole number from {at_least} up.")


def _check_memory(samples: int) -> None:
    if samples * _BYTES_A_SAMPLE > physical_memory():
        raise OptionError(
            f"episodes of {samples:,} samples in all do not fit into memory. Ask for fewer "
            "episodes at a time, with another seed each time."
        )


def _rows_by_class(labels: NDArray[Any]) -> tuple[NDArray[Any], Ints, Ints, Ints]:
    """The classes, the rows sorted by class, and where each class starts and how long it is."""
    if labels.ndim != 1 or len(labels) == 0:
        raise DataError(f"labels must be one per row, (n,), got shape {labels.shape}.")
    names, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    rows = np.argsort(numbers, kind="stable")
    return names, rows, np.cumsum(sizes) - sizes, sizes


def _check_enough(names: NDArray[Any], sizes: Ints, classes: int, shot: int, query: int) -> None:
    if len(names) < classes:
        raise OptionError(
            f"an episode needs {classes} classes, there are {len(names)}. "
            "Ask for fewer ways or distractors, or give features of more classes."
        )
    short = np.flatnonzero(sizes < shot + query)
    if len(short):
        others = f" (and {len(short) - 1} other classes)" if len(short) > 1 else ""
        raise DataError(
            f"class {names[short[0]]} has {sizes[short[0]]} samples{others}, {shot} shots and "
            f"{query} queries need {shot + query}. Ask for fewer, or leave the class out."
        )


def _repeated(rows: Ints) -> bool:
    """Whether a number stands twice in a row of (n, m)."""
    ordered = np.sort(rows, axis=1)
    return bool((ordered[:, 1:] == ordered[:, :-1]).any())


def _shared_out(proportions: NDArray[np.float64], total: int, room: Ints) -> Ints:
    """Whole numbers (episodes, way) near proportions x total that sum to total and fit the room.

    Largest remainders first; what does not fit a class goes to those with most of a share.
    """
    exact = proportions * total
    counts = np.floor(exact).astype(np.int64)
    missing = total - counts.sum(axis=1, keepdims=True)
    by_remainder = np.argsort(np.argsort(counts - exact, axis=1), axis=1)
    counts = np.minimum(counts + (by_remainder < missing), room)
    order = np.argsort(-proportions, axis=1)
    space = np.take_along_axis(room - counts, order, axis=1)
    rest = total - counts.sum(axis=1, keepdims=True)
    extra = np.clip(rest - (np.cumsum(space, axis=1) - space), 0, space)
    shared: Ints = counts.copy()
    np.put_along_axis(shared, order, np.take_along_axis(counts, order, axis=1) + extra, axis=1)
    return shared
