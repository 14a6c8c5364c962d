"""Few-shot episodes: sampled with a seed, checked, saved and loaded.

An episode is a set of rows of a feature table: a few labeled ones per class (the support) and
unlabeled ones (the queries). Saved episodes let two programs run on the same tasks.
"""

import os
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protorect._utils.arrays import load_arrays, save_arrays
from protorect._utils.memory import physical_memory
from protorect._utils.parameters import check_whole
from protorect.errors import DataError, OptionError
from protorect.evaluation.draws import MANY, Ints, draw_distinct

DISTRACTOR = -1  # the class position of a query that belongs to none of the episode's classes
_BYTES_PER_SAMPLE = 40  # upper bound of the memory that sampling takes


@dataclass(frozen=True)
class Episodes:
    """Row numbers of many episodes of one shape.

    Parameters
    ----------
    support
        (episodes, way, shot), rows of the labeled samples.
    query
        (episodes, n_query), rows of the unlabeled samples.
    query_way
        (episodes, n_query), position 0 .. way - 1 of each query's class in its episode, or
        `DISTRACTOR`. For scoring only: methods never see it.

    Examples
    --------
    >>> import protorect
    >>> protorect.Episodes(support=[[[0], [1]]], query=[[2, 3]], query_way=[[0, 1]]).way
    2
    """

    support: Ints
    query: Ints
    query_way: Ints

    def __post_init__(self) -> None:
        for name in ("support", "query", "query_way"):
            array = np.asarray(getattr(self, name))
            if array.dtype.kind not in "iu":
                raise DataError(f"{name} must hold integers, it holds {array.dtype}.")
            object.__setattr__(self, name, array.astype(np.int64, copy=False))
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
        """Number of queries per class, on average, without distractors."""
        return round(int((self.query_way != DISTRACTOR).sum()) / (len(self) * self.way))

    def with_shot(self, shot: int) -> Self:
        """The same episodes with only the first `shot` support samples of each class."""
        if not 1 <= shot <= self.shot:
            raise OptionError(f"these episodes have {self.shot} shots; {shot} cannot be selected.")
        return replace(self, support=self.support[:, :, :shot])

    def first(self, count: int) -> Self:
        """The first `count` of these episodes."""
        if not 1 <= count <= len(self):
            raise OptionError(f"there are {len(self)} episodes; {count} cannot be selected.")
        parts = (self.support[:count], self.query[:count], self.query_way[:count])
        return type(self)(*parts)

    def check_labels(self, labels: NDArray[Any]) -> None:
        """Raise DataError if these episodes cannot come from rows with these labels (n,)."""
        lowest = min(self.support.min(), self.query.min())
        highest = max(self.support.max(), self.query.max())
        if lowest < 0 or highest >= len(labels):
            raise DataError(
                f"these episodes use rows {lowest} .. {highest}; the features have {len(labels)} "
                "rows, so they were sampled from another feature file."
            )
        classes = np.unique(labels, return_inverse=True)[1]
        support, query = classes[self.support], classes[self.query]
        ways = support[:, :, 0]  # the class at each position, (episodes, way)
        expected = np.take_along_axis(ways, self.query_way.clip(min=0), axis=1)
        distractor = self.query_way == DISTRACTOR
        known = (query[:, :, None] == ways[:, None, :]).any(axis=2) if distractor.any() else False
        agree = (
            (support == ways[:, :, None]).all()
            and not _has_repeats(ways)
            and (distractor | (query == expected)).all()
            and not (distractor & known).any()
        )
        if not agree:
            raise DataError(
                "these episodes do not agree with the labels: they were sampled from other "
                "features, or from these in another order."
            )
        if _has_repeats(np.concatenate([self.support.reshape(len(self), -1), self.query], axis=1)):
            raise DataError("an episode has the same row twice; no row may be used twice.")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .npz file with support, query and query_way."""
        save_arrays(path, support=self.support, query=self.query, query_way=self.query_way)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a .npz file with support, query and query_way."""
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
    """Sample episodes from labeled rows; support and queries never share a row.

    The queries of an episode come class by class, distractors last. They are sampled before the
    support, so that without `dirichlet` a smaller `shot` gives the same episodes with fewer
    support samples.

    Parameters
    ----------
    labels
        (n,), the class of every row: numbers or strings.
    way, shot, query
        Classes per episode, support samples and queries per class.
    episodes
        Number of episodes.
    seed
        The same seed gives the same episodes.
    dirichlet
        If given, the way x query queries are distributed over the classes in proportions from a
        Dirichlet distribution with this concentration, as far as the classes have samples.
    distractors
        Number of additional classes per episode, each with `query` queries and no support.

    Examples
    --------
    >>> import protorect
    >>> labels = ["cat", "dog", "owl"] * 20
    >>> episodes = protorect.sample_episodes(labels, way=2, shot=1, query=5, episodes=100)
    >>> episodes.support.shape, episodes.query.shape
    ((100, 2, 1), (100, 10))
    """
    check_whole("way", way, 2)
    for name, count in {"shot": shot, "query": query, "episodes": episodes}.items():
        check_whole(name, count, 1)
    check_whole("distractors", distractors)
    check_whole("seed", seed)
    if dirichlet is not None and not (isinstance(dirichlet, Real) and 0 < dirichlet <= 1e6):
        raise OptionError(f"dirichlet is {dirichlet!r}; it must be above 0 and at most 1e6.")
    names, rows, starts, sizes = _rows_by_class(np.asarray(labels))
    _check_enough(names, sizes, way + distractors, shot, query)
    n_samples = episodes * (way + distractors) * (shot + query)
    if n_samples * _BYTES_PER_SAMPLE > physical_memory():
        raise OptionError(
            f"episodes with {n_samples:,} samples in total do not fit into memory. Ask for fewer "
            "episodes at a time, with another seed each time."
        )

    rng = np.random.default_rng(seed)
    # (episodes, way + distractors)
    classes = draw_distinct(rng, np.full(episodes, len(names)), way + distractors)
    counts = np.full(classes.shape, query)  # queries of each class
    if dirichlet is not None:
        proportions = rng.dirichlet(np.full(way, dirichlet), size=episodes)
        counts[:, :way] = _whole_counts(proportions, way * query, sizes[classes[:, :way]] - shot)

    max_query = int(counts.max())
    samples = draw_distinct(rng, sizes[classes.ravel()], max_query + shot, shuffle=max_query > MANY)
    samples = samples.reshape(*classes.shape, max_query + shot) + starts[classes][..., None]
    # The first samples of a class are its queries, the next ones its support.
    is_query = np.arange(max_query) < counts[..., None]  # (episodes, way + distractors, max_query)
    support_places = counts[:, :way, None] + np.arange(shot)  # (episodes, way, shot)
    positions = np.append(np.arange(way), np.full(distractors, DISTRACTOR))[:, None]
    return Episodes(
        support=rows[np.take_along_axis(samples[:, :way], support_places, axis=-1)],
        query=rows[samples[..., :max_query][is_query]].reshape(episodes, -1),
        query_way=np.broadcast_to(positions, is_query.shape)[is_query].reshape(episodes, -1),
    )


def _rows_by_class(labels: NDArray[Any]) -> tuple[NDArray[Any], Ints, Ints, Ints]:
    """Class names, row numbers sorted by class, and start and size of each class in them."""
    if labels.ndim != 1 or len(labels) == 0:
        raise DataError(f"labels must be (n,), one per row, got shape {labels.shape}.")
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
        others = f" ({len(short) - 1} more classes are too small)" if len(short) > 1 else ""
        raise DataError(
            f"class {names[short[0]]} has {sizes[short[0]]} samples; {shot} shots and {query} "
            f"queries need {shot + query}{others}. Ask for fewer, or leave such classes out."
        )


def _has_repeats(numbers: Ints) -> bool:
    """Whether a row of (n, m) has the same number twice."""
    ordered = np.sort(numbers, axis=1)
    return bool((ordered[:, 1:] == ordered[:, :-1]).any())


def _whole_counts(proportions: NDArray[np.float64], total: int, capacity: Ints) -> Ints:
    """Integers (episodes, way) near proportions x total that sum to total, each within capacity.

    Rounded by the largest remainders. What exceeds the capacity of a class goes to the classes
    with the largest proportions that have capacity left.
    """
    exact = proportions * total
    counts = np.floor(exact).astype(np.int64)
    missing = total - counts.sum(axis=1, keepdims=True)
    by_remainder = np.argsort(np.argsort(counts - exact, axis=1), axis=1)
    counts = np.minimum(counts + (by_remainder < missing), capacity)
    order = np.argsort(-proportions, axis=1)
    free = np.take_along_axis(capacity - counts, order, axis=1)
    excess = total - counts.sum(axis=1, keepdims=True)
    extra = np.clip(excess - (np.cumsum(free, axis=1) - free), 0, free)
    filled: Ints = counts.copy()
    np.put_along_axis(filled, order, np.take_along_axis(counts, order, axis=1) + extra, axis=1)
    return filled
