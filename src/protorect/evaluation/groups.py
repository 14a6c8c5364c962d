"""Sampling of support and queries that share no group, such as the frames of one video."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from protorect.errors import DataError
from protorect.evaluation.draws import Ints

_ATTEMPTS = 20  # per episode; more than one only where groups have rows of several classes


class _Reserved(NamedTuple):
    """Groups reserved for the support of an episode, so that they hold no query."""

    spare: dict[int, int]  # by class of the episode: rows that may still be reserved
    groups: frozenset[int] = frozenset()
    places: tuple[int, ...] = ()  # of the groups reserved for the last class, in its list of groups


class GroupSampler:
    """Sampler of episodes from classes whose rows belong to groups.

    The support samples of a class come from different groups where it has enough of them. The
    queries are any rows of the groups that are not in the episode's support. `classes` and
    `groups` (n,) are numbers of the class, a position in `names`, and the group of each row; every
    class must have rows for `shot` support samples and `query` queries.
    """

    def __init__(
        self, names: NDArray[Any], classes: Ints, groups: Ints, shot: int, query: int
    ) -> None:
        self._names, self._row_groups, self._shot = names, groups, shot
        rows = np.lexsort((groups, classes))
        self._rows = np.split(rows, np.cumsum(np.bincount(classes))[:-1])  # by class, then group
        found = [np.unique(groups[own], return_counts=True) for own in self._rows]
        self._groups = [numbers for numbers, _ in found]
        self._sizes = [sizes for _, sizes in found]
        self._starts = [np.cumsum(sizes) - sizes for sizes in self._sizes]
        self._shared = _shared_groups(classes, groups)
        self.capacity = self._capacity(query)  # (classes,), how many queries a class can have

    def sample(
        self, rng: np.random.Generator, classes: Sequence[int], counts: Sequence[int], way: int
    ) -> tuple[Ints, Ints]:
        """Support (way, shot) and queries of an episode, class by class.

        The classes have `counts` queries each; the first `way` of them have support.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                reserved = self._reserve_support(rng, classes, counts, way)
                break
            except DataError:
                if attempt == _ATTEMPTS:
                    raise
        support = [
            self._spread(rng, c, one.places) for c, one in zip(classes, reserved, strict=False)
        ]
        in_support = list(reserved[-1].groups)
        query = []
        for c, count in zip(classes, counts, strict=True):
            free = ~np.isin(self._row_groups[self._rows[c]], in_support)
            query.append(rng.choice(self._rows[c][free], count, replace=False))
        return np.stack(support), np.concatenate(query)

    def _capacity(self, query: int) -> Ints:
        """How many queries each class can have; DataError if one has fewer than `query`."""
        capacity, short = np.zeros(len(self._rows), dtype=np.int64), []
        for c, rows in enumerate(self._rows):
            smallest = np.argsort(self._sizes[c], kind="stable")
            nothing = _Reserved({c: len(rows) - query})
            reserved = self._reserve(c, (smallest, smallest[::-1]), nothing)
            if reserved is None:
                short.append(c)
            else:
                capacity[c] = query + reserved.spare[c]
        if short:
            raise self._too_few(short[0], query, len(short) - 1)
        return capacity

    def _reserve_support(
        self, rng: np.random.Generator, classes: Sequence[int], counts: Sequence[int], way: int
    ) -> list[_Reserved]:
        """Reserve groups for the support of one class after the other."""
        rows = [len(self._rows[c]) for c in classes]
        last = _Reserved({c: n - q for c, n, q in zip(classes, rows, counts, strict=True)})
        reserved = []
        for c, count in zip(classes[:way], counts, strict=False):
            found = self._reserve(c, self._random_orders(rng, c), last)
            if found is None:
                raise self._too_few(c, count)
            reserved.append(last := found)
        return reserved

    def _random_orders(self, rng: np.random.Generator, c: int) -> Iterator[Ints]:
        """Orders to reserve the groups of a class in, the next if the last found too few."""
        order = rng.permutation(len(self._sizes[c]))
        yield order
        smallest = order[np.argsort(self._sizes[c][order], kind="stable")]
        yield smallest  # gives the most groups
        yield smallest[::-1]

    def _reserve(self, c: int, orders: Iterable[Ints], last: _Reserved) -> _Reserved | None:
        """Reserve `shot` groups of a class, or as many as it has; None if they lack rows."""
        best = None
        for order in orders:
            found = self._reserve_in_order(c, order, last)
            enough = self._sizes[c][list(found.places)].sum() >= self._shot
            if enough and (best is None or len(found.places) > len(best.places)):
                best = found
            if len(found.places) == self._shot:
                break
        return best

    def _reserve_in_order(self, c: int, order: Ints, last: _Reserved) -> _Reserved:
        """Reserve the first `shot` groups that leave each class of the episode its queries."""
        spare, groups, places = dict(last.spare), set(last.groups), []
        for place in order.tolist():
            group = int(self._groups[c][place])
            sizes = self._shared.get(group, {c: int(self._sizes[c][place])})
            if group not in groups:
                if any(size > spare.get(other, size) for other, size in sizes.items()):
                    continue
                spare |= {other: spare[other] - sizes[other] for other in sizes.keys() & spare}
            groups.add(group)
            places.append(place)
            if len(places) == self._shot:
                break
        return _Reserved(spare, frozenset(groups), tuple(places))

    def _spread(self, rng: np.random.Generator, c: int, places: tuple[int, ...]) -> Ints:
        """Random rows (shot,) of these groups: one of each group, then a second one of each."""
        picked, rounds = [], []
        for place in places:
            drawn = rng.permutation(self._sizes[c][place])[: self._shot]
            picked.append(self._rows[c][self._starts[c][place] + drawn])
            rounds.append(np.arange(len(drawn)))
        order = np.argsort(np.concatenate(rounds), kind="stable")[: self._shot]
        return np.concatenate(picked)[order]

    def _too_few(self, c: int, query: int, others: int = 0) -> DataError:
        more = f" ({others} more classes have too few)" if others else ""
        return DataError(
            f"class {self._names[c]} has too few groups, {len(self._groups[c])}: {self._shot} "
            f"shots and {query} queries must not share one{more}. Ask for fewer, or leave such "
            "classes out."
        )


def _shared_groups(classes: Ints, groups: Ints) -> dict[int, dict[int, int]]:
    """The groups with rows of several classes: the number of rows by class."""
    n = int(classes.max()) + 1
    pairs, sizes = np.unique(groups * n + classes, return_counts=True)
    of_shared = np.bincount(pairs // n)[pairs // n] > 1
    shared: dict[int, dict[int, int]] = {}
    for pair, size in zip(pairs[of_shared].tolist(), sizes[of_shared].tolist(), strict=True):
        shared.setdefault(pair // n, {})[pair % n] = size
    return shared
