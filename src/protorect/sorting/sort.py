"""Sort pictures into a folder: find, embed, classify, place, write the outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from protorect._utils.progress import Progress
from protorect.errors import DataError, OptionError
from protorect.images.find import FailedPicture, FoundPictures, PictureSource, find_pictures
from protorect.images.stored import PathLike, StoredPicture
from protorect.labeling.classifier import ImageClassifier
from protorect.labeling.examples import Examples, ExampleSource, find_examples
from protorect.labeling.predictions import Predictions, check_parquet
from protorect.sorting.evaluation import Evaluation
from protorect.sorting.folder import SortedFolder, check_folder_names, open_folder
from protorect.sorting.outputs import write_outputs
from protorect.uncertainty.thresholds import DEFAULT_THRESHOLDS, Thresholds

ProgressOf = Callable[[str], AbstractContextManager[Progress]]  # of the step with this name


def no_progress(_: str) -> AbstractContextManager[Progress]:
    """A `ProgressOf` that shows nothing."""
    return nullcontext(lambda done, total: None)


@dataclass(frozen=True)
class SortOptions:
    """How to sort.

    `mode` is "link", "copy" or "move"; `evaluate` takes the folders of the pictures as their true
    labels; `progress_of` gives, for the name of a step, a context with its progress callback.
    """

    mode: str = "link"
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    contact_sheet: bool = True
    parquet: bool = False
    evaluate: bool = False
    progress_of: ProgressOf = no_progress


@dataclass(frozen=True)
class SortResult:
    """The outcome of a sorting.

    `finished` pictures had been left by an interruption and were placed now; `problems` are
    pictures that could not be read or placed, `examples` those with the content of an example, and
    `other_files` the number of files that are no pictures. `replaced_links` counts the symbolic
    links the system did not make, by what was made instead: "hard link" or "copy".
    """

    folder: SortedFolder
    finished: int = 0
    problems: tuple[FailedPicture, ...] = ()
    examples: tuple[str, ...] = ()
    other_files: int = 0
    replaced_links: Counter[str] = field(default_factory=Counter)
    evaluation: Evaluation | None = None


def sort_into(
    pictures: PictureSource,
    examples: ExampleSource,
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
        known, classifier = fit_examples(folder, examples, options, **classifier_options)
        return sort_all(folder, pictures, known, classifier, options)


def fit_examples(
    folder: SortedFolder, examples: ExampleSource, options: SortOptions, **classifier_options: Any
) -> tuple[Examples, ImageClassifier]:
    """Check that pictures can be sorted into the folder, and make a classifier of the examples."""
    if folder.mode == "move" and options.mode != "move":
        raise OptionError(
            f"{folder.root} holds pictures that were moved into it; continue with --move, or put "
            f"them back first: protorect undo {folder.root}."
        )
    known = find_examples(examples)
    check_folder_names(known.classes)
    if options.parquet:
        check_parquet()
    with options.progress_of("examples") as progress:
        classifier = ImageClassifier.from_examples(known, progress=progress, **classifier_options)
    return known, classifier


def sort_all(
    folder: SortedFolder,
    pictures: PictureSource,
    examples: Examples,
    classifier: ImageClassifier,
    options: SortOptions,
    may_be_empty: bool = False,
) -> SortResult:
    """Finish an interrupted move, then sort everything that is there.

    Without a picture this is an error, unless there `may_be_empty` as pictures are yet to come.
    """
    finished = 0
    problems: list[FailedPicture] = []
    if folder.mode == "move":
        with options.progress_of("move") as progress:
            finished, problems = folder.finish(progress)
    replaces = folder.mode in ("link", "copy")
    found = pictures_to_sort(folder, pictures, examples, again=replaces)
    if not (found.pictures or folder.mode == "move" or may_be_empty):
        raise DataError("there is no picture to sort; give a folder, a pattern or a list of them.")
    result = sort_pictures(folder, found, examples, classifier, options, problems, replaces)
    return replace(result, finished=finished)


def pictures_to_sort(
    folder: SortedFolder, pictures: PictureSource, examples: Examples, again: bool = False
) -> FoundPictures:
    """The pictures without the examples and, unless sorted `again`, what is in the folder."""
    placed = set() if again else {one.prediction.path for one in folder.placements}
    try:
        found = find_pictures(pictures)
    except DataError:
        if not placed:
            raise
        found = FoundPictures(())  # a pattern that no longer matches anything: all were moved
    found = found.without(folder.root, [picture.file for picture in examples.pictures])
    new = tuple(picture for picture in found.pictures if picture.file not in placed)
    return replace(found, pictures=new)


def sort_pictures(
    folder: SortedFolder,
    found: FoundPictures,
    examples: Examples,
    classifier: ImageClassifier,
    options: SortOptions,
    problems: Iterable[FailedPicture] = (),
    replaces: bool = False,
) -> SortResult:
    """Classify and place pictures, and write the outputs; `problems` are earlier ones.

    Pictures sorted before are classified with the others but stay where they are; where this
    sorting `replaces` the earlier one, their links and copies are removed at the last moment.
    """
    result = SortResult(folder, problems=tuple(problems), other_files=found.other_files)
    if found.pictures:
        before = () if replaces else folder.placements
        in_folder = [StoredPicture.from_file(folder.root / one.target) for one in before]
        with options.progress_of("pictures") as progress:
            embedded = classifier.embed((*in_folder, *found.pictures), progress)
        everything = classifier.predict_embedded(embedded, options.thresholds)
        predictions = _of_files(everything, {picture.file for picture in found.pictures})
        remaining = folder.empty(set(predictions.contents)) if replaces else []
        files = [picture.file for picture in examples.pictures]
        labeled = zip(files, examples.labels, strict=True)
        with options.progress_of(options.mode) as progress:
            unplaced, links = folder.add(predictions, options.mode, labeled, progress)
        result = replace(
            result,
            problems=(
                *result.problems,
                *classifier.problems,
                *predictions.problems,
                *remaining,
                *unplaced,
            ),
            examples=predictions.examples,
            replaced_links=links,
        )
    if folder.plans:
        with options.progress_of("thumbnails") as progress:
            evaluation = write_outputs(
                folder,
                result.problems,
                parquet=options.parquet,
                with_contact_sheet=options.contact_sheet,
                evaluate=options.evaluate,
                progress=progress,
            )
        result = replace(result, evaluation=evaluation)
    return result


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
