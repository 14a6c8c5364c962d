"""Class splits: which classes are for training, validation and test."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from protorect.errors import DataError, OptionError

SPLITS = ("train", "val", "test")
DEFAULT_FRACTIONS = (0.64, 0.16, 0.2)  # miniImageNet's 64, 16 and 20 of 100
_EXAMPLE = '{"train": ["cat", ...], "val": [...], "test": [...]}'


@dataclass(frozen=True)
class ClassSplit:
    """Sorted class names of each split; no class is in two splits."""

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


def known_split(dataset: str) -> ClassSplit | None:
    """Return the published split of a benchmark; None if this package has no copy."""
    lists = _class_lists().get(dataset)
    return None if lists is None else ClassSplit(**{s: tuple(lists[s]) for s in SPLITS})


def fraction_split(
    classes: Iterable[str], fractions: tuple[float, ...], seed: int = 0
) -> ClassSplit:
    """Split classes at random; a split with a fraction above zero gets at least one class.

    Parameters
    ----------
    classes
        Class names, in any order.
    fractions
        Of train, val and test; they sum to 1.
    seed
        Random seed; the order of `classes` does not matter.
    """
    names = sorted(classes)
    splits = sum(fraction > 0 for fraction in fractions)
    if len(names) < splits:
        raise DataError(
            f"{len(names)} classes ({', '.join(names[:3])}) cannot be divided into {splits} "
            "splits; give more classes or fewer splits, as in --split 0,0,1."
        )
    shuffled = [names[i] for i in np.random.default_rng(seed).permutation(len(names))]
    train, val, _ = _counts(len(names), fractions)
    return ClassSplit(
        tuple(shuffled[:train]),
        tuple(shuffled[train : train + val]),
        tuple(shuffled[train + val :]),
    )


def parse_fractions(text: str) -> tuple[float, float, float]:
    """Parse three comma-separated numbers that sum to 1, as in `0.64,0.16,0.2`."""
    try:
        train, val, test = (float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(
            f"--split {text!r} is neither a .json file nor three fractions as in 0.64,0.16,0.2."
        ) from None
    if not (min(train, val, test) >= 0 and abs(train + val + test - 1) < 1e-6):
        raise OptionError(f"--split {text!r}: the three fractions must be 0 or more and sum to 1.")
    return train, val, test


def split_from_file(path: Path) -> ClassSplit:
    """Read a JSON file with the class names of train, val and test."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"there is no split file {path}.") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}. It should be {_EXAMPLE}.") from error
    if not isinstance(document, Mapping) or not document or set(document) - set(SPLITS):
        raise DataError(f"{path} should have only the keys train, val and test: {_EXAMPLE}.")
    lists = {split: document.get(split, []) for split in SPLITS}
    for split, names in lists.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(f"{path}: {split} should be a list of class names: {_EXAMPLE}.")
    if not any(lists.values()):
        raise DataError(f"{path} names no class. It should be {_EXAMPLE}.")
    return ClassSplit(**{split: tuple(names) for split, names in lists.items()})


@cache
def _class_lists() -> dict[str, dict[str, list[str]]]:
    packed = (Path(__file__).parent / "class_lists.json.gz").read_bytes()
    lists: dict[str, dict[str, list[str]]] = json.loads(gzip.decompress(packed))
    return lists


def _counts(classes: int, fractions: tuple[float, ...]) -> list[int]:
    """Integers nearest to the fractions that sum to `classes`, none rounded to zero."""
    exact = np.array([classes * fraction for fraction in fractions])
    counts = np.maximum(exact.astype(int), exact > 0)
    while counts.sum() < classes:
        counts[np.argmax(exact - counts)] += 1
    while counts.sum() > classes:
        counts[np.argmax(np.where(counts > 1, counts - exact, -np.inf))] -= 1
    return [int(count) for count in counts]
