"""Few-shot episodes: checked, saved and loaded.

An episode is a set of rows of a feature table: a few labeled ones per class (the support) and
unlabeled ones (the queries). Saved episodes let two programs run on the same tasks.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from protorect._utils.arrays import load_arrays, save_arrays
from protorect.errors import DataError, OptionError
from protorect.evaluation.draws import Ints

DISTRACTOR = -1  # the class position of a query that belongs to none of the episode's classes


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
        return type(self)(self.support[:count], self.query[:count], self.query_way[:count])

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


def _has_repeats(numbers: Ints) -> bool:
    """Whether a row of (n, m) has the same number twice."""
    ordered = np.sort(numbers, axis=1)
    return bool((ordered[:, 1:] == ordered[:, :-1]).any())
