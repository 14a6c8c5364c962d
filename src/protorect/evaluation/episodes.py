"""Few-shot episodes: sampled with a seed, checked, saved and loaded.

An episode is a set of rows of a feature table: a few labeled ones per class (the support) and
unlabeled ones (the queries). Saved episodes let two programs run on the same tasks.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protorect._utils.arrays import load_arrays, save_arrays
from protorect._utils.memory import physical_memory
from protorect._utils.parameters import Parameters, parameter
from protorect.errors import DataError, OptionError
from protorect.evaluation.draws import MANY, Ints, draw_distinct
from protorect.evaluation.groups import GroupSampler
from protorect.evaluation.labels import plain_groups, plain_labels

DISTRACTOR = -1  # the class position of a query that belongs to none of the episode's classes
_BYTES_PER_SAMPLE = 40  # upper bound of the memory that sampling takes


class Sampling(Parameters):
    """How episodes are sampled."""

    way: int = parameter(5, "Classes per episode.", minimum=2)
    shot: int = parameter(1, "Support samples per class.", minimum=1)
    query: int = parameter(15, "Queries per class.", minimum=1)
    episodes: int = parameter(600, "Number of episodes.", minimum=1)
    seed: int = parameter(0, "The same seed gives the same episodes.")
    dirichlet: float | None = parameter(
        None,
        "Concentration of a Dirichlet distribution: the queries are divided among the classes in "
        "proportions from it, as far as the classes have samples.",
        above=0,
        maximum=1e6,
    )
    distractors: int = parameter(
        0, "Additional classes per episode, each with `query` queries and no support."
    )
    present: int | None = parameter(
        None, "Number of the episode's classes that have queries; by default all.", minimum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.present is not None and self.present > self.way:
            raise OptionError(f"present is {self.present}; an episode has {self.way} classes.")


@dataclass(frozen=True, eq=False)
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
        """Number of queries of each class that has any, or their average over all classes."""
        first = self.way * np.arange(len(self))[:, None]  # number of each episode's first class
        counts = np.bincount((self.query_way + first)[self.query_way != DISTRACTOR])
        numbers = np.unique(counts[counts > 0])
        if len(numbers) == 1:
            return int(numbers[0])
        return round(int(counts.sum()) / (len(self) * self.way))

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

    def check_groups(self, groups: NDArray[Any]) -> None:
        """Raise DataError if support and queries of an episode share one of the groups (n,)."""
        names, numbers = np.unique(groups, return_inverse=True)
        first = len(names) * np.arange(len(self))[:, None]  # number of each episode's first group
        support = numbers[self.support.reshape(len(self), -1)] + first
        query = numbers[self.query] + first
        shared = query[np.isin(query, support)]
        if len(shared):
            episode, group = divmod(int(shared[0]), len(names))
            raise DataError(
                f"support and queries of episode {episode} share the group {names[group]}; sample "
                "the episodes with these groups."
            )

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
    present: int | None = None,
    groups: ArrayLike | None = None,
) -> Episodes:
    """Sample episodes from labeled rows; support and queries never share a row.

    The queries of an episode come class by class, distractors last. They are sampled before the
    support, so that without `dirichlet` and `groups` a smaller `shot` gives the same episodes with
    fewer support samples.

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
        If given, the queries are distributed over the classes in proportions from a Dirichlet
        distribution with this concentration, as far as the classes have samples.
    distractors
        Number of additional classes per episode, each with `query` queries and no support.
    present
        If given, only this many of the episode's classes, chosen at random, occur among the
        queries; there are present x query of them.
    groups
        (n,), the group of every row, such as its video. If given, support and queries of an episode
        share no group, and the support of a class comes from different groups if it has enough.

    Examples
    --------
    >>> import protorect
    >>> labels = ["cat", "dog", "owl"] * 20
    >>> episodes = protorect.sample_episodes(labels, way=2, shot=1, query=5, episodes=100)
    >>> episodes.support.shape, episodes.query.shape
    ((100, 2, 1), (100, 10))
    """
    Sampling(way, shot, query, episodes, seed, dirichlet, distractors, present)
    table = _ClassRows.of(plain_labels(labels))
    table.check_enough(way + distractors, shot, query)
    n_samples = episodes * (way + distractors) * (shot + query)
    if n_samples * _BYTES_PER_SAMPLE > physical_memory():
        raise OptionError(
            f"episodes with {n_samples:,} samples in total do not fit into memory. Ask for fewer "
            "episodes at a time, with another seed each time."
        )
    sampler = None if groups is None else table.group_sampler(groups, shot, query)

    rng = np.random.default_rng(seed)
    # (episodes, way + distractors)
    classes = draw_distinct(rng, np.full(episodes, len(table.names)), way + distractors)
    occurs = np.ones(classes.shape, dtype=bool)  # whether a class has queries
    if present is not None:
        # Of another stream of random numbers, so that the rows are those of episodes without it.
        absent = draw_distinct(rng.spawn(1)[0], np.full(episodes, way), way - present)
        np.put_along_axis(occurs, absent, False, axis=1)
    counts = np.full(classes.shape, query)  # queries of each class
    if dirichlet is not None:
        capacity = table.sizes - shot if sampler is None else sampler.capacity
        capacity = np.where(occurs, capacity[classes], 0)[:, :way]
        counts[:, :way] = _dirichlet_counts(rng, dirichlet, query, occurs[:, :way], capacity)

    if sampler is None:
        support, queries = table.draw(rng, classes, counts, occurs, way, shot)
    else:
        pairs = zip(classes.tolist(), (counts * occurs).tolist(), strict=True)
        drawn = [sampler.sample(rng, *pair, way) for pair in pairs]
        support, queries = (np.stack(rows) for rows in zip(*drawn, strict=True))
    positions = np.append(np.arange(way), np.full(distractors, DISTRACTOR))
    query_way = np.repeat(np.tile(positions, episodes), (counts * occurs).ravel())
    return Episodes(support, queries, query_way.reshape(episodes, -1))


class _ClassRows(NamedTuple):
    """The rows of a feature table by class."""

    names: NDArray[Any]
    numbers: Ints  # (n,), the class of each row as a position in `names`
    rows: Ints  # (n,), row numbers sorted by class
    starts: Ints  # position of each class in `rows`
    sizes: Ints

    @classmethod
    def of(cls, labels: NDArray[Any]) -> Self:
        if labels.ndim != 1 or len(labels) == 0:
            raise DataError(f"labels must be (n,), one per row, got shape {labels.shape}.")
        names, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        rows = np.argsort(numbers, kind="stable")
        return cls(names, numbers, rows, np.cumsum(sizes) - sizes, sizes)

    def check_enough(self, classes: int, shot: int, query: int) -> None:
        """Raise if there are too few classes, or one of them has too few samples."""
        if len(self.names) < classes:
            raise OptionError(
                f"an episode needs {classes} classes, there are {len(self.names)}. "
                "Ask for fewer ways or distractors, or give features of more classes."
            )
        short = np.flatnonzero(self.sizes < shot + query)
        if len(short):
            others = f" ({len(short) - 1} more classes are too small)" if len(short) > 1 else ""
            raise DataError(
                f"class {self.names[short[0]]} has {self.sizes[short[0]]} samples; {shot} shots "
                f"and {query} queries need {shot + query}{others}. Ask for fewer, or leave such "
                "classes out."
            )

    def group_sampler(self, groups: ArrayLike, shot: int, query: int) -> GroupSampler:
        """A sampler of rows that belong to groups (n,)."""
        group_names = plain_groups(groups, len(self.rows))
        group_numbers = np.unique(group_names, return_inverse=True)[1]
        return GroupSampler(self.names, self.numbers, group_numbers, shot, query)

    def draw(
        self,
        rng: np.random.Generator,
        classes: Ints,
        counts: Ints,
        occurs: NDArray[np.bool_],
        way: int,
        shot: int,
    ) -> tuple[Ints, Ints]:
        """Support (episodes, way, shot) and queries (episodes, n_query) of these classes."""
        max_query = int(counts.max())
        sizes = self.sizes[classes.ravel()]
        samples = draw_distinct(rng, sizes, max_query + shot, shuffle=max_query > MANY)
        samples = samples.reshape(*classes.shape, -1) + self.starts[classes][..., None]
        # The first samples of a class are its queries, the next ones its support.
        is_query = (np.arange(max_query) < counts[..., None]) & occurs[..., None]
        support_places = counts[:, :way, None] + np.arange(shot)  # (episodes, way, shot)
        support = np.take_along_axis(samples[:, :way], support_places, axis=-1)
        query = samples[..., :max_query][is_query].reshape(len(classes), -1)
        return self.rows[support], self.rows[query]


def _has_repeats(numbers: Ints) -> bool:
    """Whether a row of (n, m) has the same number twice."""
    ordered = np.sort(numbers, axis=1)
    return bool((ordered[:, 1:] == ordered[:, :-1]).any())


def _dirichlet_counts(
    rng: np.random.Generator,
    concentration: float,
    query: int,
    occurs: NDArray[np.bool_],
    capacity: Ints,
) -> Ints:
    """Queries of each class (episodes, way), `query` per class that occurs on average."""
    episodes, n_classes = len(occurs), int(occurs[0].sum())
    drawn = rng.dirichlet(np.full(n_classes, concentration), size=episodes)
    proportions = np.zeros(occurs.shape)
    proportions[occurs] = drawn.ravel()
    return _whole_counts(proportions, n_classes * query, capacity)


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
