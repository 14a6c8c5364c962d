"""Sort pictures into a folder, once or as they arrive.

The steps are: find, embed, classify, place, write the outputs.
"""

import time
from collections import Counter
from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from protorect._utils.files import write_errors
from protorect._utils.progress import Progress, ProgressOf
from protorect.embedding.cache import file_status
from protorect.embedding.sources.embedder import described
from protorect.errors import DataError, OptionError
from protorect.images.find import (
    FailedPicture,
    FoundPictures,
    PictureSource,
    SkippedFile,
    find_pictures,
)
from protorect.images.stored import PathLike, StoredPicture
from protorect.labeling.classifier import ImageClassifier
from protorect.labeling.examples import (
    Examples,
    ExampleSource,
    check_classes,
    find_examples,
    merged,
)
from protorect.labeling.examples.found import Found
from protorect.labeling.examples.sorted_folder import correction_examples, given_examples
from protorect.labeling.exports import check_format
from protorect.labeling.predictions import Predictions
from protorect.sorting.advice import Advice, advise
from protorect.sorting.evaluation import Evaluation
from protorect.sorting.folder import SortedFolder, check_folder_names, open_folder
from protorect.sorting.outputs import write_outputs
from protorect.uncertainty.thresholds import DEFAULT_THRESHOLDS, Thresholds

SECONDS_BETWEEN_SCANS = 2.0


def no_progress(_: str) -> AbstractContextManager[Progress]:
    """Show nothing; a default of `SortOptions.progress_of`."""
    return nullcontext(lambda done, total: None)


@dataclass(frozen=True)
class SortOptions:
    """How to sort."""

    mode: str = "link"  # or "copy" or "move"
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    contact_sheet: bool = True
    parquet: bool = False
    evaluate: bool = False  # the folders of the pictures are their true labels
    progress_of: ProgressOf = no_progress


@dataclass
class SortResult:
    """The outcome of a sorting."""

    folder: SortedFolder
    network: str  # its name, precision and device
    finished: int = 0  # pictures that an interruption had left and that were placed now
    problems: list[FailedPicture] = field(default_factory=list)  # not read, or not placed
    examples: tuple[str, ...] = ()  # pictures with the content of an example
    skipped: tuple[SkippedFile, ...] = ()  # files that are no pictures
    # Symbolic links that the system did not make, by what was made: "hard link" or "copy".
    replaced_links: Counter[str] = field(default_factory=Counter)
    notices: tuple[str, ...] = ()  # what a person should know of the examples
    corrections: int = 0  # pictures that a person put into a folder since the last sorting
    # How many pictures are in another folder than after the last sorting, the most first.
    changes: tuple[tuple[str, str, int], ...] = ()
    evaluation: Evaluation | None = None
    advice: Advice | None = None


def sort_into(
    pictures: PictureSource,
    examples: ExampleSource | Examples,
    out: PathLike,
    options: SortOptions,
    **classifier_options: Any,
) -> SortResult:
    """Sort pictures into a folder; the same call continues after an interruption.

    Links and copies of an earlier sorting into the folder are replaced; what was moved into it
    stays, and new pictures are added. `classifier_options` are those of
    `ImageClassifier.from_examples`.
    """
    with open_folder(Path(out)) as folder:
        return Sorter(folder, pictures, examples, options, **classifier_options).sort_all()


def watch(
    pictures: PictureSource,
    examples: ExampleSource | Examples,
    out: PathLike,
    options: SortOptions,
    **classifier_options: Any,
) -> Generator[SortResult]:
    """Sort what is there and then, forever, what arrives; yield the result of each round.

    A picture is sorted when two scans find it unchanged, so that none is read while it is still
    being written. One that could not be read is read again only when it has changed. The
    parameters are those of `sort_into`.
    """
    with open_folder(Path(out)) as folder:
        sorter = Sorter(folder, pictures, examples, options, **classifier_options)
        yield sorter.sort_all(may_be_empty=True)
        last: dict[str, tuple[int, int]] = {}
        failed: dict[str, tuple[int, int]] = {}
        while True:
            found = sorter.find()
            # A file that cannot be examined never changes.
            now = {one.file: file_status(one.file) or (-1, -1) for one in found.pictures}
            ready = tuple(
                picture
                for picture in found.pictures
                if last.get(picture.file) == now[picture.file] != failed.get(picture.file)
            )
            if ready:
                result = sorter.sort(replace(found, pictures=ready))
                failed |= {path: now[path] for path, _ in result.problems if path in now}
                yield result
            last = now
            time.sleep(SECONDS_BETWEEN_SCANS)


class Sorter:
    """Sorts pictures into an open folder, with a classifier of the examples."""

    def __init__(
        self,
        folder: SortedFolder,
        pictures: PictureSource,
        examples: ExampleSource | Examples,
        options: SortOptions,
        **classifier_options: Any,
    ) -> None:
        if folder.mode == "move" and options.mode != "move":
            raise OptionError(
                f"{folder.root} holds pictures that were moved into it; continue with --move, or "
                f"put them back first: protorect undo {folder.root}."
            )
        folder.check_writable()  # before links of an earlier sorting are removed
        self.folder, self.pictures, self.options = folder, pictures, options
        self.examples = _with_corrections(folder, find_examples(examples))
        check_classes(self.examples)
        check_folder_names(self.examples.classes)
        if options.parquet:
            check_format("parquet")
        self.find(again=True)  # wrong names are reported before anything is embedded
        with options.progress_of("examples") as progress:
            self.classifier = ImageClassifier.from_examples(
                self.examples, progress=progress, **classifier_options
            )

    def sort_all(self, may_be_empty: bool = False) -> SortResult:
        """Finish an interrupted move, then sort all pictures; DataError without any.

        There `may_be_empty` if pictures are still to arrive.
        """
        folder, result = self.folder, SortResult(self.folder, described(self.classifier.embedder))
        if folder.mode == "move":
            with self.options.progress_of("move") as progress:
                result.finished, result.problems = folder.finish(progress)
        replaces = folder.mode in ("link", "copy")
        found = self.find(again=replaces)
        if not (found.pictures or folder.mode == "move" or may_be_empty):
            raise DataError(
                "there is no picture to sort; give a folder, a pattern or a list of them."
            )
        return self.sort(found, result, replaces)

    def find(self, again: bool = False) -> FoundPictures:
        """The pictures without the examples and, unless sorted `again`, those sorted before."""
        sorted_before = {one.prediction.path for one in self.folder.placements if not again}
        try:
            found = find_pictures(self.pictures)
        except DataError:
            if not sorted_before:
                raise
            found = FoundPictures(())  # a pattern that no longer matches anything: all were moved
        found = found.without(self.folder.root, self.examples.apart)
        new = tuple(one for one in found.pictures if one.file not in sorted_before)
        return replace(found, pictures=new)

    def sort(
        self, found: FoundPictures, result: SortResult | None = None, replaces: bool = False
    ) -> SortResult:
        """Classify and place pictures, and write the outputs; adds to an earlier `result`.

        Pictures sorted before are classified together with the new ones but stay where they are,
        unless this sorting `replaces` them: then their links and copies are removed at the last
        moment.
        """
        folder, options = self.folder, self.options
        result = result or SortResult(folder, described(self.classifier.embedder))
        result.skipped, result.notices = found.skipped, self.classifier.notices
        result.corrections = sum(one.is_new and one.is_label for one in folder.corrections)
        if found.pictures:
            before = [] if replaces else folder.placements
            in_folder = [StoredPicture.from_file(folder.root / one.target) for one in before]
            with options.progress_of("pictures") as progress:
                embedded = self.classifier.embed((*in_folder, *found.pictures), progress)
            everything = self.classifier.predict_embedded(embedded, options.thresholds)
            predictions = _of_files(everything, {picture.file for picture in found.pictures})
            result.examples = predictions.examples
            result.problems += [*self.classifier.problems, *predictions.problems]
            result.changes = _changes(folder, predictions)
            result.advice = advise(predictions, embedded, len(self.classifier.labels))
            if replaces:
                with write_errors(folder.root):
                    result.problems += folder.empty(predictions)
            files = [picture.file for picture in self.examples.pictures]
            labeled = zip(files, self.examples.labels, strict=True)
            with options.progress_of(options.mode) as progress:
                problems, links = folder.add(predictions, options.mode, labeled, progress)
            result.problems += problems
            result.replaced_links = links
        if folder.plans:
            with options.progress_of("thumbnails") as progress, write_errors(folder.root):
                result.evaluation = write_outputs(
                    folder,
                    [*result.problems, *(one.as_failed() for one in result.skipped)],
                    parquet=options.parquet,
                    with_contact_sheet=options.contact_sheet,
                    evaluate=options.evaluate,
                    progress=progress,
                )
        return result


def _with_corrections(folder: SortedFolder, given: Examples) -> Examples:
    """The examples, and what a person moved in the folder before and since the last sorting.

    Corrections without the examples of their sorting are completed by those of the last one.
    """
    earlier = [Found(correction_examples(folder.corrections, new=False))]
    if not given.complete:
        earlier.insert(0, Found(given_examples(folder.root)))
    since = Found(correction_examples(folder.corrections, new=True))
    return merged([*earlier, *given.as_sources(), since])


def _changes(folder: SortedFolder, predictions: Predictions) -> tuple[tuple[str, str, int], ...]:
    """From which folder to which pictures have changed, and how many, the most first."""
    before = {
        one.prediction.path: one.prediction.folder
        for plan in folder.recorded
        for one in plan.placements
    }
    pairs = ((before.get(row.path, row.folder), row.folder) for row in predictions.rows)
    counts = Counter((old, new) for old, new in pairs if old != new)
    return tuple((old, new, count) for (old, new), count in counts.most_common())


def _of_files(predictions: Predictions, files: set[str]) -> Predictions:
    """The predictions of some files."""
    positions = [i for i, row in enumerate(predictions.rows) if row.path in files]
    return replace(
        predictions,
        rows=tuple(predictions.rows[i] for i in positions),
        contents=tuple(predictions.contents[i] for i in positions),
        problems=tuple(problem for problem in predictions.problems if problem.path in files),
        examples=tuple(path for path in predictions.examples if path in files),
    )
