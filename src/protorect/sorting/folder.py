"""A sorted folder: filled by a plan, continued after an interruption, undone.

Beside the pictures and the outputs there is one subfolder, `.protorect`: it has the lock, the
journal, thumbnails, and a second copy of each output, by which an edited one is recognized.
"""

import errno
import filecmp
import os
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from protorect._utils.files import (
    check_writable,
    file_errors,
    names_in,
    read_errors,
    remove_temporary_files,
    sync_folders,
    write_errors,
)
from protorect._utils.locks import locked
from protorect._utils.progress import Progress
from protorect._utils.text import numbered, printable
from protorect.errors import DataError, OptionError, PartialError
from protorect.images.find import FailedPicture
from protorect.labeling import placements as journal
from protorect.labeling.class_names import name_problem
from protorect.labeling.corrections import SortedPictures
from protorect.labeling.placements import OWN, Placement, Plan
from protorect.labeling.predictions import Predictions
from protorect.sorting import previous_layout
from protorect.sorting.placing import FATAL, is_placed, place, put_back

LOCK, THUMBNAILS, WRITTEN = f"{OWN}/lock", f"{OWN}/thumbnails", f"{OWN}/written"
TABLES = ("predictions.csv", "predictions.parquet", "errors.csv")
OUTPUTS = (*TABLES, "index.html", "confusion.svg", "evaluation.json")
_RESERVED = (*previous_layout.FOLDERS, *OUTPUTS)
_PAGE = re.compile(r"index-\d+\.html")  # further pages of the contact sheet


@contextmanager
def open_folder(root: Path) -> Iterator["SortedFolder"]:
    """Hold the lock of a folder that is missing, empty, or was sorted into before.

    If nothing was sorted into it in the end, its state before the block is restored.
    """
    _check_usable(root)
    made = [folder for folder in (root, *root.parents) if not folder.exists()]
    with file_errors("make", root):
        (root / OWN).mkdir(parents=True, exist_ok=True)
    unused = False
    try:
        with locked(root / LOCK, root):
            with write_errors(root):
                previous_layout.convert(root, root / WRITTEN)
            for own in (journal.FOLDER, WRITTEN):
                remove_temporary_files(root / own)
            folder = SortedFolder(root, made_folder=bool(made))
            if folder.made_folder and not made:
                made = [root]
            try:
                yield folder
            finally:
                unused = not journal.journal_files(root)
                if unused:  # while the lock is held: another command would need this folder
                    _remove_empty([root / journal.FOLDER])
    finally:
        if unused:
            _remove_empty([root / OWN, *made])


def was_sorted_into(root: Path) -> bool:
    """Whether `protorect sort` made or filled this folder."""
    return (root / OWN).is_dir() or previous_layout.is_found(root)


class SortedFolder:
    """The folder that pictures are sorted into, and the plans of everything sorted into it."""

    def __init__(self, root: Path, made_folder: bool = False) -> None:
        self.root = root
        pictures = SortedPictures.load(root)
        self.recorded, self.plans = pictures.recorded, list(pictures.plans)
        self.corrections = pictures.corrections
        self._left = [target for plan in self.plans for target in plan.left]
        self.made_folder = self.plans[0].made_folder if self.plans else made_folder

    @property
    def mode(self) -> str | None:
        """How the pictures sorted before were placed."""
        return self.plans[-1].mode if self.plans else None

    @property
    def placements(self) -> list[Placement]:
        """Everything that was sorted into the folder."""
        return [placement for plan in self.plans for placement in plan.placements]

    def check_writable(self) -> None:
        """Raise DataError if another sorting could not be recorded."""
        for own in (self.root / journal.FOLDER, self.root / WRITTEN):
            if own.is_dir():
                check_writable(own / "new")

    def finish(self, progress: Progress | None = None) -> tuple[int, list[FailedPicture]]:
        """Place the pictures that an interruption left; return their number and the problems."""
        count, problems = 0, []
        for plan in self.plans:
            left = [one for one in plan.placements if not is_placed(one, self.root, plan.mode)]
            if left:
                self._check_trusted([plan])
            count += len(left)
            problems += self._place(left, plan, progress)[0]
        return count, problems

    def add(
        self,
        predictions: Predictions,
        mode: str,
        examples: Iterable[tuple[str, str]],
        progress: Progress | None = None,
    ) -> tuple[list[FailedPicture], Counter[str]]:
        """Write a plan and place its pictures; what a person put in its folder stays there.

        Returns the problems, and how many hard links and copies replace symbolic links.
        """
        placements = tuple(self._placements(predictions))
        chosen = {one.target for one in self.corrections}
        plan = Plan(
            mode,
            tuple(examples),
            predictions.method,
            self.made_folder,
            placements,
            journal.new_name(self.root),
            predictions.network,
            tuple(one.target for one in placements if one.target in chosen),
            tuple(self._left),
        )
        journal.write_plan(self.root, plan)
        self.plans.append(plan)
        return self._place(plan.placements, plan, progress)

    def undo(self, progress: Progress | None = None, trust: bool = False) -> list[FailedPicture]:
        """Put every picture back and remove what was made; return the files that have to stay.

        Pictures are moved to where a journal says only if this user's protorect wrote it here and
        they are unchanged, or if the user trusts all of it.
        """
        if not trust:
            self._check_trusted(self.plans)
        problems = self._put_back(progress, trust=trust)
        if not problems:
            self.clear(self.outputs(), keep_edited=True)
            for name in (THUMBNAILS, WRITTEN, journal.FOLDER):  # the journal last
                with file_errors("remove", self.root / name):
                    if (self.root / name).is_dir():
                        shutil.rmtree(self.root / name)
            self.plans = []
        return problems

    def _check_trusted(self, plans: Iterable[Plan]) -> None:
        if any(plan.mode == "move" and plan.placements and not plan.sealed for plan in plans):
            raise DataError(
                f"{self.root} was sorted by another user, on another computer or by an earlier "
                "version, and its journal may name any place to move files to. Nothing was "
                f"touched. If you trust it: protorect undo --trust {self.root}."
            )

    def empty(self, predictions: Predictions) -> list[FailedPicture]:
        """Remove links and copies before the same pictures are sorted again.

        A copy that was changed stays, and so does one whose original is gone or changed, unless it
        is among the pictures of `predictions`. What a person put into the folder that is predicted
        stays, too. Thumbnails stay, to be used again.
        """
        kept = set(self._chosen(predictions).values())
        problems = self._put_back(None, set(predictions.contents), kept)
        self._left += [os.path.relpath(path, self.root) for path, _ in problems]
        for path in journal.journal_files(self.root):
            path.unlink()
        self.plans = []
        return problems

    def outputs(self) -> list[str]:
        """The names of all outputs that may be there: the contact sheet may have many pages."""
        return [*OUTPUTS, *filter(_PAGE.fullmatch, names_in(self.root / WRITTEN))]

    @contextmanager
    def output(self, name: str) -> Iterator[Path]:
        """Give a path to write an output to; it appears in the folder if the block succeeds."""
        written = self.root / WRITTEN / name
        copy = written.with_name(f"copy of {name}")
        with write_errors(self.root / name):
            self.clear([name])
            written.parent.mkdir(exist_ok=True)
            yield written
            shutil.copyfile(written, copy)
            os.replace(copy, self.root / name)

    def clear(self, names: Iterable[str], keep_edited: bool = False) -> None:
        """Remove outputs of an earlier sorting; one that was edited is renamed, or kept."""
        for name in names:
            path, written = self.root / name, self.root / WRITTEN / name
            unchanged = path.is_file() and written.is_file() and not path.is_symlink()
            if unchanged and filecmp.cmp(path, written, shallow=False):
                path.unlink()
            elif os.path.lexists(path) and not keep_edited:
                os.rename(path, self.root / self._free_name("", f"edited {name}", set()))

    def _placements(self, predictions: Predictions) -> Iterator[Placement]:
        chosen = self._chosen(predictions)
        taken = {placement.target.casefold() for placement in self.placements}
        pictures = zip(predictions.rows, predictions.contents, strict=True)
        for position, (row, content) in enumerate(pictures):
            target = chosen.get(position)
            if target is None or target.casefold() in taken:
                target = self._free_name(row.folder, os.path.basename(row.path), taken)
            taken.add(target.casefold())
            link = os.readlink(row.path) if os.path.islink(row.path) else ""
            yield Placement(row, target, content, link)

    def _chosen(self, predictions: Predictions) -> dict[int, str]:
        """Where a person put the pictures at these places of the predictions."""
        waiting: dict[tuple[str, str], list[int]] = {}
        pictures = zip(predictions.rows, predictions.contents, strict=True)
        for position, (row, content) in enumerate(pictures):
            waiting.setdefault((content, row.folder), []).append(position)
        chosen: dict[int, str] = {}
        for one in self.corrections:
            places = waiting.get((one.content, one.label), [])
            same = [position for position in places if predictions.rows[position].path == one.file]
            if one.is_label and places:
                position = (same or places)[0]
                places.remove(position)
                chosen[position] = one.target
        return chosen

    def _free_name(self, folder: str, name: str, taken: set[str]) -> str:
        """`folder/name`, or `folder/name (2)` and so on where that is taken."""
        number, free = 1, os.path.join(folder, name)
        while free.casefold() in taken or os.path.lexists(self.root / free):
            number += 1
            free = os.path.join(folder, numbered(name, number))
        return free

    def _place(
        self, placements: Sequence[Placement], plan: Plan, progress: Progress | None
    ) -> tuple[list[FailedPicture], Counter[str]]:
        problems, replaced_links = [], Counter[str]()
        for done, placement in enumerate(placements, 1):
            try:
                way = place(placement, self.root, plan)
                replaced_links[way] += way != plan.mode
            except OSError as error:
                if error.errno in FATAL:
                    raise PartialError(
                        f"stopped after {done - 1} of {len(placements)} pictures: "
                        f"{error.strerror}. Make room and give the same command to continue, or "
                        f"`protorect undo {self.root}` to go back."
                    ) from error
                problems.append(
                    FailedPicture(placement.prediction.path, error.strerror or str(error))
                )
            if progress is not None:
                progress(done, len(placements))
        sync_folders({self.root / Path(one.target).parent for one in placements})
        return problems, replaced_links

    def _put_back(
        self,
        progress: Progress | None,
        also_elsewhere: Container[str] = (),
        kept: Container[str] = (),
        trust: bool = False,
    ) -> list[FailedPicture]:
        problems = []
        pairs = [
            (placement, plan)
            for plan in self.plans
            for placement in plan.placements
            if placement.target not in kept
        ]
        for done, (placement, plan) in enumerate(reversed(pairs), 1):
            target = self.root / placement.target
            try:
                put_back(placement, self.root, plan, also_elsewhere, trust)
            except OSError as error:
                problems.append(FailedPicture(str(target), error.strerror or str(error)))
            if progress is not None:
                progress(done, len(pairs))
        folders = {self.root / Path(placement.target).parent for placement, _ in pairs}
        _remove_empty(sorted(folders, reverse=True))
        return problems


def check_folder_names(classes: Iterable[str]) -> None:
    """Raise OptionError if a label cannot be the name of a folder beside the outputs."""
    known: dict[str, str] = {}
    for label in classes:
        shown = repr(printable(label if len(label) <= 60 else f"{label[:60]}..."))
        text = label.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # any bytes
        pages = [label.casefold()] if _PAGE.fullmatch(label.casefold()) else []
        if problem := name_problem(text, [*_RESERVED, *pages]):
            raise OptionError(
                f"the label {shown} cannot be the name of a folder: {problem}. Use letters, "
                f"digits, spaces and dashes, and none of {', '.join(_RESERVED)}."
            )
        other = known.setdefault(unicodedata.normalize("NFC", label).casefold(), label)
        if other != label:
            raise OptionError(
                f"the labels {printable(other)!r} and {shown} differ in upper and lower case only, "
                "or look the same, and would be one folder on some systems; rename one of them."
            )


def _check_usable(root: Path) -> None:
    with read_errors(root):
        if root.exists() and not root.is_dir():
            raise DataError(f"{root} is a file; give the name of a folder.")
        if root.exists() and not was_sorted_into(root) and names_in(root):
            raise DataError(
                f"{root} is not empty and was not made by `protorect sort`; choose another output "
                "path."
            )


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
                raise
