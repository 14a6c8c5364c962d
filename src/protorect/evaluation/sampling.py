"""Sampling of episodes with a seed: balanced, unbalanced, with distractors, from groups."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from protorect._utils.memory import physical_memory
from protorect._utils.parameters import Parameters, parameter
from protorect.errors import DataError, OptionError
from protorect.evaluation.draws import MANY, Ints, draw_distinct
from protorect.evaluation.episodes import DISTRACTOR, Episodes
from protorect.evaluation.groups import GroupSampler
from protorect.evaluation.labels import plain_groups, plain_labels

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
    sampler = None
    if groups is not None:
        group_of_row = np.unique(plain_groups(groups, len(table.rows)), return_inverse=True)[1]
        sampler = GroupSampler(table.names, table.numbers, group_of_row, shot, query)

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
