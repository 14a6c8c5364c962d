"""The classes that were found, divided into splits; or a sentence that says what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from protorect._utils.text import printable
from protorect.datasets.catalogue import Dataset
from protorect.datasets.layouts import Found, describe
from protorect.datasets.layouts.found import Pictures
from protorect.datasets.splits import DEFAULT_FRACTIONS, SPLITS, ClassSplit, fraction_split
from protorect.errors import DataError

Fractions = tuple[float, float, float]


@dataclass(frozen=True)
class Division:
    """Pictures by split and class; empty splits are absent.

    Parameters
    ----------
    splits
        Split name -> class name -> pictures, classes sorted.
    left_out
        What was found and is not packed.
    """

    splits: dict[str, Pictures]
    left_out: tuple[str, ...]


def divide(
    kind: Dataset,
    root: Path,
    scratch: Path,
    split: ClassSplit | Fractions | None = None,
    seed: int = 0,
) -> Division:
    """Find the pictures of a data set and divide them.

    Without `split`, a benchmark is divided as published, and a folder as its folders say or by
    the default fractions.
    """
    named = split if isinstance(split, ClassSplit) else kind.split
    found = kind.find(root, scratch, named)
    classes = _classes(kind, root, found, named)
    if isinstance(split, tuple):
        chosen = fraction_split(classes, split, seed)
    else:
        chosen = named or found.split or fraction_split(classes, DEFAULT_FRACTIONS, seed)
    _check(classes, found, root)
    by_split = {name: {one: found.pictures[one] for one in chosen[name]} for name in SPLITS}
    used = chosen.names
    unused = [
        f"{name}/ ({len(pictures)} pictures, not in the split)"
        for name, pictures in sorted(found.pictures.items())
        if name not in used
    ]
    present = {name: pictures for name, pictures in by_split.items() if pictures}
    return Division(present, found.left_out + tuple(unused))


def _classes(kind: Dataset, root: Path, found: Found, named: ClassSplit | None) -> list[str]:
    """Names of the classes to pack, all of which were found."""
    if not found.pictures:
        raise _wrong_layout(kind, root, "no class was found")
    if named is None:
        return sorted(found.pictures)
    missing = sorted(named.names - set(found.pictures))
    if missing:
        what = f"{len(missing)} of {len(named.names)} classes are missing ({_some(missing)})"
        raise _wrong_layout(kind, root, what)
    return sorted(named.names)


def _check(classes: list[str], found: Found, root: Path) -> None:
    if len(classes) < 2:
        raise DataError(
            f"{printable(str(root))} has one class, {classes[0]}; few-shot tasks need at least two."
        )
    empty = [name for name in classes if not found.pictures[name]]
    if empty:
        raise DataError(
            f"class {empty[0]} has no picture"
            + (f", nor have {len(empty) - 1} more ({_some(empty[1:])})" if empty[1:] else "")
            + ". Add at least one .jpg or .png, or remove the folder."
        )


def _wrong_layout(kind: Dataset, root: Path, what: str) -> DataError:
    return DataError(
        f"{printable(str(root))} cannot be used as {kind.name}: {what}. "
        f"Expected: {kind.expects}. Found: {describe(root)}."
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
