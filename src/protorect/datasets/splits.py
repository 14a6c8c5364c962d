"""Which classes are for training, validation and test."""

from __future__ import annotations

import gzip
import json
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
    """Class names of each split, sorted; no class is in two."""

    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]

    def __post_init__(self) -> None:
        for split in SPLITS:
            object.__setattr__(self, split, tuple(sorted(getattr(self, split))))
        names = [name for split in SPLITS for name in self[split]]
        twice = sorted({name for name in names if names.count(name) > 1}) if _repeats(names) else []
        if twice:
            raise DataError(
                f"the split names {', '.join(twice[:3])} more than once; "
                "a class belongs to one of train, val and test."
            )

    def __getitem__(self, split: str) -> tuple[str, ...]:
        return tuple(getattr(self, split))

    @property
    def names(self) -> frozenset[str]:
        """All classes."""
        return frozenset(name for split in SPLITS for name in self[split])


def known_split(dataset: str) -> ClassSplit | None:
    """The published split of a benchmark; None if we have no copy of it."""
    lists = _class_lists().get(dataset)
    return None if lists is None else ClassSplit(**{s: tuple(lists[s]) for s in SPLITS})


def fraction_split(
    classes: Iterable[str], fractions: tuple[float, ...], seed: int = 0
) -> ClassSplit:
    """Divide classes at random; a split with a fraction above zero gets at least one.

    Parameters
    ----------
    classes
        Class names, in any order.
    fractions
        Of train, val and test; they sum to one.
    seed
        The same seed divides the same names in the same way.
    """
    names = sorted(classes)
    wanted = sum(fraction > 0 for fraction in fractions)
    if len(names) < wanted:
        raise DataError(
            f"{len(names)} classes ({', '.join(names[:3])}) cannot be divided into {wanted} "
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
    """Three numbers with commas that sum to one, as in `0.64,0.16,0.2`."""
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
    """Read a JSON file that lists the classes of train, val and test."""
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


def _repeats(names: list[str]) -> bool:
    return len(set(names)) != len(names)


def _counts(classes: int, fractions: tuple[float, ...]) -> list[int]:
    """Whole numbers nearest to the fractions that sum to `classes`, none emptied by rounding."""
    exact = [classes * fraction for fraction in fractions]
    counts = [max(int(share), int(share > 0)) for share in exact]
    while sum(counts) < classes:
        counts[_largest([share - n for share, n in zip(exact, counts, strict=True)])] += 1
    while sum(counts) > classes:
        room = [n - share if n > 1 else -np.inf for share, n in zip(exact, counts, strict=True)]
        counts[_largest(room)] -= 1
    return counts


def _largest(values: list[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)
