"""A sorted folder: planned, filled, gone on with after an interruption, undone."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from protorect._utils.files import write_text
from protorect._utils.progress import Progress
from protorect._utils.text import printable
from protorect.errors import DataError, OptionError, PartialError
from protorect.images.find import FailedPicture
from protorect.labeling.predictions import Predictions
from protorect.sorting import journal
from protorect.sorting.journal import Batch, Entry
from protorect.sorting.placing import (
    FATAL,
    NotPlacedError,
    content_of,
    is_placed,
    place,
    put_back,
)

THUMBNAILS = "_thumbnails"
OUTPUTS = "outputs.json"
PREDICTIONS, PARQUET, ERRORS = "predictions.csv", "predictions.parquet", "errors.csv"
SHEET, CONFUSION, EVALUATION = "index.html", "confusion.svg", "evaluation.json"
_OURS = (journal.FOLDER, THUMBNAILS, PREDICTIONS, PARQUET, ERRORS, SHEET, CONFUSION, EVALUATION)
_LONGEST_NAME = 200  # bytes, of a folder
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP)


@dataclass(frozen=True)
class SortedFolder:
    """The folder that pictures are sorted into, and what was sorted into it before."""

    root: Path
    batches: tuple[Batch, ...]
    is_new: bool

    @classmethod
    def open(cls, root: Path) -> SortedFolder:
        """A folder that is empty, not there yet, or was sorted into before."""
        try:
            if root.exists() and not root.is_dir():
                raise DataError(f"{root} is a file; give the name of a folder to --out.")
            is_new = not root.exists()
            batches = tuple(journal.load_batches(root))
            ours = is_new or (root / journal.FOLDER).is_dir()
            if not ours and os.listdir(root):
                raise DataError(
                    f"{root} is not empty and was not made by `protorect sort`; give a new folder "
                    "to --out."
                )
        except OSError as error:
            raise DataError(f"cannot read {root}: {error.strerror}.") from error
        return cls(root, batches, is_new)

    @property
    def mode(self) -> str | None:
        """How pictures came here before."""
        return self.batches[-1].mode if self.batches else None

    @property
    def entries(self) -> list[Entry]:
        """Everything that was sorted into it."""
        return [entry for batch in self.batches for entry in batch.entries]

    def left(self) -> int:
        """How many pictures an interruption left unplaced."""
        return sum(
            not is_placed(entry, self.root, batch.mode)
            for batch in self.batches
            for entry in batch.entries
        )

    def finish(self, progress: Progress | None = None) -> list[FailedPicture]:
        """Do what an interruption left undone."""
        problems: list[FailedPicture] = []
        for batch in self.batches:
            left = [entry for entry in batch.entries if not is_placed(entry, self.root, batch.mode)]
            problems += self._place(left, batch.mode, progress)
        return problems

    def add(
        self,
        predictions: Predictions,
        mode: str,
        examples: Iterable[tuple[str, str]],
        progress: Progress | None = None,
    ) -> tuple[SortedFolder, list[FailedPicture]]:
        """Place pictures, the journal first; also the folder as it is then."""
        made_folder = self.batches[0].made_folder if self.batches else self.is_new
        batch = Batch(
            mode, tuple(examples), predictions.method, made_folder, tuple(self._plan(predictions))
        )
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot make {self.root}: {error.strerror}.") from error
        journal.write_batch(self.root, batch)
        problems = self._place(batch.entries, mode, progress)
        return SortedFolder(self.root, (*self.batches, batch), False), problems

    def undo(self, progress: Progress | None = None) -> list[FailedPicture]:
        """Put every picture back and remove what was made; what cannot be is left and named."""
        problems = self._put_back(progress)
        if not problems:
            self._forget()
        return problems

    def emptied(self) -> tuple[SortedFolder, list[FailedPicture]]:
        """The folder with its links or copies gone, for another sorting of the same pictures.

        A copy that was changed stays. Thumbnails stay too, as they will be wanted again.
        """
        problems = self._put_back(None)
        for path in journal.journals(self.root):
            path.unlink()
        made_folder = bool(self.batches) and self.batches[0].made_folder
        return SortedFolder(self.root, (), made_folder), problems

    def _put_back(self, progress: Progress | None) -> list[FailedPicture]:
        problems = []
        entries = [(entry, batch.mode) for batch in self.batches for entry in batch.entries]
        for done, (entry, mode) in enumerate(reversed(entries), 1):
            try:
                put_back(entry, self.root, mode)
            except NotPlacedError as error:
                problems.append(FailedPicture(str(self.root / entry.to), str(error)))
            except OSError as error:
                problems.append(
                    FailedPicture(str(self.root / entry.to), error.strerror or str(error))
                )
            if progress is not None:
                progress(done, len(entries))
        self._remove_empty(Path(entry.to).parent for entry, _ in entries)
        return problems

    def write(self, name: str, text: str) -> None:
        """Write one of our own files, and remember what was written."""
        self.clear(name)
        write_text(self.root / name, text)
        self.remember(name)

    def clear(self, *names: str) -> None:
        """Remove our own files of an earlier sorting; one that was edited gets another name."""
        held = self._outputs()
        for name in names:
            path = self.root / name
            if path.is_file() and content_of(path) == held.get(name):
                path.unlink()
            elif os.path.lexists(path):
                os.rename(path, self.root / self._free_name("", f"edited {name}", set()))

    def remember(self, *names: str) -> None:
        """Keep the contents of our own files, so that undo knows one that was changed."""
        held = self._outputs() | {name: content_of(self.root / name) for name in names}
        write_text(self.root / journal.FOLDER / OUTPUTS, json.dumps(held))

    def _plan(self, predictions: Predictions) -> list[Entry]:
        taken = {entry.to.casefold() for entry in self.entries}
        plan = []
        for row, content in zip(predictions.rows, predictions.contents, strict=True):
            to = self._free_name(row.folder, os.path.basename(row.path), taken)
            taken.add(to.casefold())
            link = os.readlink(row.path) if os.path.islink(row.path) else ""
            plan.append(Entry(row, to, content, link))
        return plan

    def _free_name(self, folder: str, name: str, taken: set[str]) -> str:
        """`folder/name`, or `folder/name (2)` and so on where that is taken."""
        stem, suffix = os.path.splitext(os.path.join(folder, name))
        number, free = 1, stem + suffix
        while free.casefold() in taken or os.path.lexists(self.root / free):
            number += 1
            free = f"{stem} ({number}){suffix}"
        return free

    def _place(
        self, entries: Sequence[Entry], mode: str, progress: Progress | None
    ) -> list[FailedPicture]:
        problems = []
        for done, entry in enumerate(entries, 1):
            try:
                place(entry, self.root, mode)
            except NotPlacedError as error:
                problems.append(FailedPicture(entry.prediction.path, str(error)))
            except OSError as error:
                if error.errno in FATAL:
                    raise PartialError(
                        f"stopped after {done - 1} of {len(entries)} pictures: {error.strerror}. "
                        "Make room and give the same command to go on, or "
                        f"`protorect undo {self.root}` to go back."
                    ) from error
                if mode == "link" and error.errno in _NO_LINKS:
                    raise OptionError(
                        f"{self.root} is on a file system without links ({error.strerror}); use "
                        "--copy."
                    ) from error
                problems.append(FailedPicture(entry.prediction.path, error.strerror or str(error)))
            if progress is not None:
                progress(done, len(entries))
        journal.sync_folders({self.root / Path(entry.to).parent for entry in entries})
        return problems

    def _outputs(self) -> dict[str, str]:
        try:
            held = json.loads((self.root / journal.FOLDER / OUTPUTS).read_text(encoding="utf-8"))
            return {name: digest for name, digest in held.items() if name in _OURS}
        except (OSError, ValueError, AttributeError):
            return {}

    def _forget(self) -> None:
        """Remove what `protorect sort` wrote, the journal last; a file that was changed stays."""
        for name, digest in self._outputs().items():
            path = self.root / name
            if path.is_file() and content_of(path) == digest:
                path.unlink()  # one that was edited stays
        thumbnails = self.root / THUMBNAILS
        if not thumbnails.is_symlink():
            for path in thumbnails.glob("*.jpg"):
                path.unlink()
        self._remove_empty([Path(THUMBNAILS)])
        shutil.rmtree(self.root / journal.FOLDER)
        if self.batches and self.batches[0].made_folder:
            self._remove_empty([Path()])

    def _remove_empty(self, folders: Iterable[Path]) -> None:
        for folder in sorted(set(folders), reverse=True):
            try:
                (self.root / folder).rmdir()
            except OSError:  # not empty, or gone already
                continue


def check_folder_names(classes: Iterable[str]) -> None:
    """Raise OptionError if a label cannot be the name of a folder beside our own."""
    for label in classes:
        plain = label.strip() and not set(label) & set('/\\\0:*?"<>|\n\r\t')
        too_long = len(os.fsencode(label)) > _LONGEST_NAME
        reserved = label.casefold() in (*_OURS, "_unknown", "_unsure") or label.startswith(".")
        if not plain or too_long or reserved or label.endswith((".", " ")):
            raise OptionError(
                f"the label {printable(label)!r} cannot be the name of a folder; use letters, "
                f"digits, spaces and dashes, and none of {', '.join(_OURS)}."
            )
