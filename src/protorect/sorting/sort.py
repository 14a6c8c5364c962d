"""Sorting a pile into a folder: find, read, classify, place, write down."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from protorect._utils.progress import Progress
from protorect.errors import DataError, OptionError
from protorect.images.find import FailedPicture, FoundPictures, PictureSource, find_pictures
from protorect.images.stored import PathLike, StoredPicture
from protorect.labeling.classifier import ImageClassifier
from protorect.labeling.examples import Examples, ExampleSource, find_examples
from protorect.labeling.predictions import Predictions, check_parquet
from protorect.sorting.evaluation import Assessment
from protorect.sorting.folder import SortedFolder, check_folder_names
from protorect.sorting.outputs import write_outputs
from protorect.uncertainty.thresholds import DEFAULT_THRESHOLDS, Thresholds

Shown = Callable[[str], AbstractContextManager[Progress]]


@dataclass(frozen=True)
class SortOptions:
    """How to sort.

    Parameters
    ----------
    mode
        "link", "copy" or "move".
    thresholds
        When a picture is set aside.
    sheet
        Whether to make the contact sheet.
    parquet
        Whether to write the predictions as Parquet, too.
    truth
        Whether the pictures' folders are their true labels, to be compared with.
    """

    mode: str = "link"
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    sheet: bool = True
    parquet: bool = False
    truth: bool = False


@dataclass(frozen=True)
class Sorted:
    """What became of a pile.

    Parameters
    ----------
    folder
        With all that was ever sorted into it.
    added
        How many pictures were placed now.
    finished
        How many had been left by an interruption and were placed now.
    problems
        Pictures that could not be read or placed.
    examples
        Pictures of the pile that are examples, too.
    others
        How many files among the pictures are none.
    assessment
        How right the labels are, where the truth is known.
    """

    folder: SortedFolder
    added: int
    finished: int
    problems: tuple[FailedPicture, ...]
    examples: tuple[str, ...]
    others: int
    assessment: Assessment | None = None


@dataclass(frozen=True)
class Sorter:
    """The examples learnt, ready for any number of rounds.

    Parameters
    ----------
    classifier, examples
        What was learnt, and from what.
    options
        How to sort.
    shown
        Gives, for the name of a step, a context with a function to report progress to.
    """

    classifier: ImageClassifier
    examples: Examples
    options: SortOptions
    shown: Shown

    @classmethod
    def learn(
        cls,
        examples: ExampleSource,
        options: SortOptions,
        shown: Shown | None = None,
        **of_classifier: Any,
    ) -> Sorter:
        """Read the examples; `of_classifier` goes to `ImageClassifier.from_examples`."""
        found = find_examples(examples)
        check_folder_names(found.classes)
        if options.parquet:
            check_parquet()
        show = shown or _silent
        with show("examples") as progress:
            classifier = ImageClassifier.from_examples(found, progress=progress, **of_classifier)
        return cls(classifier, found, options, show)

    def pile(self, pictures: PictureSource, folder: SortedFolder) -> FoundPictures:
        """The pictures to sort: not the examples, and nothing that is in the folder already."""
        placed = {entry.prediction.path for entry in folder.entries}
        try:
            found = find_pictures(pictures)
        except DataError:
            if not placed:
                raise
            found = FoundPictures(())  # a pattern that fits nothing any more: all were moved
        found = found.without(folder.root, [picture.file for picture in self.examples.pictures])
        kept = tuple(picture for picture in found.pictures if picture.file not in placed)
        return replace(found, pictures=kept)

    def sort(self, pile: FoundPictures, folder: SortedFolder, replaces: bool = False) -> Sorted:
        """Sort pictures; those sorted before take part in it but stay where they are.

        Or, where this sorting `replaces` what is in the folder, are taken away at the last moment.
        """
        entries = [] if replaces else folder.entries
        before = [StoredPicture.from_file(folder.root / entry.to) for entry in entries]
        with self.shown("pictures") as progress:
            embedded = self.classifier.embed((*before, *pile.pictures), progress)
        whole = self.classifier.sort(embedded, self.options.thresholds)
        predictions = _only(whole, {picture.file for picture in pile.pictures})
        pairs = zip(self.examples.pictures, self.examples.labels, strict=True)
        examples = [(picture.file, label) for picture, label in pairs]
        left: list[FailedPicture] = []
        if replaces:
            folder, left = folder.emptied()
        with self.shown(self.options.mode) as progress:
            folder, problems = folder.add(predictions, self.options.mode, examples, progress)
        problems = [*self.classifier.problems, *predictions.problems, *left, *problems]
        return Sorted(
            folder, len(predictions), 0, tuple(problems), predictions.examples, pile.other_files
        )

    def write(self, done: Sorted) -> Sorted:
        """Write the tables and the contact sheet of everything in the folder."""
        options = self.options
        with self.shown("thumbnails") as progress:
            assessment = write_outputs(
                done.folder,
                done.problems,
                parquet=options.parquet,
                sheet=options.sheet,
                truth=options.truth,
                progress=progress,
            )
        return replace(done, assessment=assessment)


def sort_into(
    pictures: PictureSource,
    examples: ExampleSource,
    out: PathLike,
    options: SortOptions,
    shown: Shown | None = None,
    *,
    may_be_empty: bool = False,
    **of_classifier: Any,
) -> tuple[Sorter, Sorted]:
    """Sort a pile into a folder; given again, the same command goes on where it was interrupted.

    Links and copies of an earlier sorting into the folder are replaced; what was moved into it
    stays, and new pictures are added. A pile without a picture is an error unless it may be empty,
    as pictures are yet to come; then nothing is written.
    """
    folder = SortedFolder.open(Path(out))
    if folder.mode == "move" and options.mode != "move":
        raise OptionError(
            f"{out} holds pictures that were moved into it; go on with --move, or put them back "
            f"first: protorect undo {out}."
        )
    sorter = Sorter.learn(examples, options, shown, **of_classifier)
    problems: list[FailedPicture] = []
    finished = 0
    replaces = folder.mode in ("link", "copy")
    if folder.mode == "move":
        finished = folder.left()
        with sorter.shown("move") as progress:
            problems += folder.finish(progress)
    pile = sorter.pile(pictures, replace(folder, batches=()) if replaces else folder)
    if pile.pictures:
        done = sorter.sort(pile, folder, replaces)
        done = replace(done, problems=(*problems, *done.problems), finished=finished)
    elif folder.mode == "move" or may_be_empty:
        done = Sorted(folder, 0, finished, tuple(problems), (), pile.other_files)
    else:
        raise DataError("there is no picture to sort; give a folder, a pattern or a list of them.")
    return sorter, sorter.write(done) if done.folder.batches else done


def _only(predictions: Predictions, files: set[str]) -> Predictions:
    """The predictions of some files."""
    places = [i for i, row in enumerate(predictions.rows) if row.path in files]
    return replace(
        predictions,
        rows=tuple(predictions.rows[i] for i in places),
        contents=tuple(predictions.contents[i] for i in places),
        problems=tuple(problem for problem in predictions.problems if problem.path in files),
        examples=tuple(path for path in predictions.examples if path in files),
    )


def _silent(_: str) -> AbstractContextManager[Progress]:
    return nullcontext(lambda done, total: None)
