"""Class splits: which classes are for training, validation and test."""

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protorect._utils.documents import read_json
from protorect.errors import DataError, OptionError

Fractions = tuple[float, float, float]  # of the classes in train, val and test
SPLITS = ("train", "val", "test")
DEFAULT_FRACTIONS = (0.64, 0.16, 0.2)  # miniImageNet's 64, 16 and 20 of 100
_EXAMPLE = '{"train": ["cat", ...], "val": [...], "test": [...]}'


@dataclass(frozen=True)
class ClassSplit:
    """The class names of each split, which it sorts; no class is in two splits."""

    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]

    def __post_init__(self) -> None:
        for split in SPLITS:
            object.__setattr__(self, split, tuple(sorted(getattr(self, split))))
        counts = Counter(name for split in SPLITS for name in self[split])
        repeated = sorted(name for name, count in counts.items() if count > 1)
        if repeated:
            raise DataError(
                f"the split names {', '.join(repeated[:3])} more than once; "
                "a class belongs to one of train, val and test."
            )

    def __getitem__(self, split: str) -> tuple[str, ...]:
        return tuple(getattr(self, split))

    @property
    def names(self) -> frozenset[str]:
        """Names of all classes."""
        return frozenset(name for split in SPLITS for name in self[split])


@cache
def known_split(dataset: str) -> ClassSplit | None:
    """Return the published split of a benchmark; None if this package has no copy."""
    compressed = (Path(__file__).parent / "class_lists.json.gz").read_bytes()
    lists = json.loads(gzip.decompress(compressed)).get(dataset)
    return None if lists is None else ClassSplit(**lists)


def fraction_split(
    classes: Iterable[str], fractions: tuple[float, ...], seed: int = 0
) -> ClassSplit:
    """Split classes at random into fractions for train, val and test that sum to 1.

    A split with a fraction above zero gets at least one class. The order of `classes` does not
    matter.
    """
    names = sorted(classes)
    splits = sum(fraction > 0 for fraction in fractions)
    if len(names) < splits:
        raise DataError(
            f"{len(names)} classes ({', '.join(names[:3])}) cannot be divided into {splits} "
            "splits; give more classes or fewer splits, as in --split 0,0,1."
        )
    shuffled = np.random.default_rng(seed).permutation(len(names))
    ends = np.cumsum(_counts(len(names), fractions))
    return ClassSplit(*(tuple(names[i] for i in part) for part in np.split(shuffled, ends[:-1])))


def parse_fractions(text: str) -> Fractions:
    """Parse three comma-separated numbers that sum to 1, as in `0.64,0.16,0.2`."""
    return checked_fractions(text.split(","), f"--split {text!r}", "a .json file")


def checked_fractions(fractions: Iterable[float | str], given: str, other: str) -> Fractions:
    """Three fractions as numbers; errors begin with what was `given` or may be given instead."""
    try:
        train, val, test = (float(one) for one in fractions)
    except (TypeError, ValueError):
        raise OptionError(
            f"{given} is neither {other} nor three fractions as in 0.64,0.16,0.2."
        ) from None
    if not (min(train, val, test) >= 0 and abs(train + val + test - 1) < 1e-6):
        raise OptionError(f"{given}: the three fractions must be 0 or more and sum to 1.")
    return train, val, test


def split_from_file(path: Path) -> ClassSplit:
    """Read a JSON file with the class names of train, val and test."""
    if not path.exists():
        raise DataError(f"there is no split file {path}.")
    document = read_json(path, {str: [str]}, f"It should be {_EXAMPLE}.", "is not a class split")
    if not document or set(document) - set(SPLITS):
        raise DataError(f"{path} should have only the keys train, val and test: {_EXAMPLE}.")
    lists = {split: document.get(split, []) for split in SPLITS}
    if not any(lists.values()):
        raise DataError(f"{path} names no class. It should be {_EXAMPLE}.")
    return ClassSplit(**lists)


def _counts(classes: int, fractions: tuple[float, ...]) -> NDArray[np.int64]:
    """Round `classes * fractions` to integers that sum to `classes`, none of them to zero."""
    exact = classes * np.array(fractions)
    counts: NDArray[np.int64] = np.maximum(exact.astype(int), exact > 0)
    while counts.sum() < classes:
        counts[np.argmax(exact - counts)] += 1
    while counts.sum() > classes:
        counts[np.argmax(np.where(counts > 1, counts - exact, -np.inf))] -= 1
    return counts
