"""What a person moved in a folder that `protorect sort` made.

A picture that is in another folder than it was placed in has the label of that folder; so has any
other picture that a person put there.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from protorect._utils.files import read_errors, sha256_of_file
from protorect.images.archives import list_pictures
from protorect.labeling.placements import Placement, Plan, load_plans
from protorect.labeling.prediction import UNKNOWN, UNSURE, Prediction

_NO_CLASSES = ("_thumbnails", "journal")  # of a folder that an earlier version sorted into


@dataclass(frozen=True)
class Correction:
    """A picture that a person put into a folder."""

    target: str  # path relative to the sorted folder
    label: str  # the name of the folder
    file: str  # the picture where it came from, or else where it is now
    content: str  # SHA-256 in hexadecimal
    is_new: bool  # since the last sorting

    @property
    def is_label(self) -> bool:
        """Whether it says of which class the picture is, or that it is of none."""
        return self.label != UNSURE


@dataclass(frozen=True)
class SortedPictures:
    """The plans of a sorted folder, with each picture where it is now."""

    recorded: tuple[Plan, ...]  # as they were written
    plans: tuple[Plan, ...]  # with the targets to which a person moved pictures
    corrections: tuple[Correction, ...]

    @classmethod
    def load(cls, root: Path) -> Self:
        """Compare the journal of a folder with the pictures in it."""
        plans = load_plans(root)
        now = [{one.target: one for one in plan.placements} for plan in plans]
        corrections = _earlier(root, plans)
        known = _Known(root, plans)
        for target in _moved(root, plans):
            with read_errors(root / target):
                content, label = sha256_of_file(root / target), Path(target).parts[0]
            file = os.fspath(root.absolute() / target)
            number, before = known.placement_of(root / target, content)
            if before is not None:
                if not os.path.lexists(root / before.target):  # else it was copied
                    now[number].pop(before.target, None)
                row = said_label(before.prediction, label)
                now[number][target] = replace(before, target=target, prediction=row)
                file = row.path if os.path.isfile(row.path) else file
            corrections.append(Correction(target, label, file, content, is_new=True))
        relocated = [
            replace(plan, placements=tuple(placements.values()))
            for plan, placements in zip(plans, now, strict=True)
        ]
        return cls(tuple(plans), tuple(relocated), tuple(corrections))


def said_label(row: Prediction, folder: str) -> Prediction:
    """The prediction of a picture that a person put into a folder."""
    if folder == UNSURE:
        return row._replace(folder=folder)
    if folder == UNKNOWN:
        return row._replace(folder=folder, familiarity=0.0)
    return Prediction.said(row.path, folder)


def _moved(root: Path, plans: Sequence[Plan]) -> list[str]:
    """Pictures in folders of the sorted folder where no plan has placed them."""
    if not plans:
        return []
    placed = {one.target for plan in plans for one in plan.placements}
    placed |= {target for plan in plans for target in plan.left}
    absolute = root.absolute()
    listing = list_pictures(absolute, scratch=absolute)  # scratch is for archives only
    targets = [
        os.path.relpath(one.file, absolute)
        for one in listing.pictures
        if one.folders and one.folders[0] not in _NO_CLASSES and not one.error
    ]
    return [target for target in targets if target not in placed]


class _Known:
    """The placements of all plans, by where the pictures came from and by their content."""

    def __init__(self, root: Path, plans: Sequence[Plan]) -> None:
        self.root = root
        self.by_source: dict[str, list[tuple[int, Placement]]] = {}
        self.by_content: dict[str, list[tuple[int, Placement]]] = {}
        for number, plan in enumerate(plans):
            for one in plan.placements:
                self.by_source.setdefault(one.prediction.path, []).append((number, one))
                self.by_content.setdefault(one.content, []).append((number, one))

    def placement_of(self, file: Path, content: str) -> tuple[int, Placement | None]:
        """The placement of a picture that is at `file` now, preferably one that is gone."""
        by_link = self.by_source.get(os.readlink(file), []) if file.is_symlink() else []
        same = by_link or self.by_content.get(content, [])
        gone = [one for one in same if not os.path.lexists(self.root / one[1].target)]
        return next(iter(gone or same), (0, None))


def _earlier(root: Path, plans: Sequence[Plan]) -> list[Correction]:
    """The corrections of earlier sortings that are still where they were."""
    placed = {one.target: one for plan in plans for one in plan.placements}
    corrections = []
    for target in dict.fromkeys(target for plan in plans for target in plan.corrections):
        one = placed.get(target)
        if one is not None and os.path.isfile(root / target):
            source = one.prediction.path
            file = source if os.path.isfile(source) else os.fspath(root.absolute() / target)
            label = Path(target).parts[0]
            corrections.append(Correction(target, label, file, one.content, is_new=False))
    return corrections
