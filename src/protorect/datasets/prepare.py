"""Index and pack a data set: from the folders it was distributed in to memory-mapped arrays."""

import csv
import json
import os
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

from protorect._utils.files import atomic_folder
from protorect._utils.manifest import MANIFEST
from protorect._utils.parallel import processes, processors
from protorect._utils.parameters import LARGEST_SIZE, Parameters, parameter
from protorect._utils.progress import Progress, part_of
from protorect._utils.tables import harmless
from protorect._utils.text import printable
from protorect.datasets.boxes import AUTO, CROPS, crop_to_boxes
from protorect.datasets.catalogue import Dataset, find_dataset
from protorect.datasets.index import COLUMNS, INDEX, IndexLine
from protorect.datasets.layouts import (
    DatasetPictures,
    PictureCheck,
    PicturesByClass,
    describe_contents,
    first_names,
)
from protorect.datasets.packed import FORMAT, VERSION, PackedDataset
from protorect.datasets.packing import PackingResult, pack_split
from protorect.datasets.splits import (
    DEFAULT_FRACTIONS,
    SPLITS,
    ClassSplit,
    Fractions,
    checked_fractions,
    fraction_split,
)
from protorect.errors import DataError, OptionError
from protorect.images.memory import share_decoding_memory

SMALLEST_SIZE = 8  # pixels per side of a packed picture


class PackingOptions(Parameters):
    """How a data set is packed."""

    size: int | None = parameter(
        None,
        "Pixels per side of a packed picture; by default as in `protorect datasets`.",
        minimum=SMALLEST_SIZE,
        maximum=LARGEST_SIZE,
    )
    channels: int | None = parameter(
        None, "1 for grayscale, 3 for color; by default that of the data set.", choices=(1, 3)
    )
    crop: str = parameter(
        AUTO,
        "boxes crops each picture to its box in bounding_boxes.txt, none packs them whole; auto "
        "crops cub if the file is there, because the paper's figures belong to cropped birds, and "
        "leaves meta-cu-birds whole, as in Meta-Dataset.",
        choices=(AUTO, *CROPS),
    )
    seed: int = parameter(0, "Random seed of a split by fractions.")
    workers: int | None = parameter(
        None, "Number of processes; by default one per processor.", minimum=1
    )


def prepare(
    name: str,
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    size: int | None = None,
    channels: int | None = None,
    crop: str = AUTO,
    split: ClassSplit | Fractions | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> PackedDataset:
    """Index and pack every picture; the folder `out` appears complete or not at all.

    Parameters
    ----------
    name
        Name of a known data set; `folder` for any folder of class folders.
    root
        The folder or archive with its pictures.
    out
        The folder to create.
    size, channels, crop, seed
        See `PackingOptions`.
    workers
        Number of processes; by default one per processor. They import the script that calls this
        function, so a script must call it inside `if __name__ == "__main__":` unless workers=1.
    split
        Class names of each split, or fractions of the classes. By default a benchmark has its
        published split; a folder has that of its train, val and test folders or 0.64, 0.16, 0.2.
    progress
        Called with the number of pictures done and the number of all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> import protorect
    >>> scratch = tempfile.TemporaryDirectory()
    >>> folder = Path(scratch.name)
    >>> for name in ("red", "green", "blue", "black"):
    ...     (folder / "pictures" / name).mkdir(parents=True)
    ...     for number in range(3):
    ...         Image.new("RGB", (32, 32), name).save(folder / "pictures" / name / f"{number}.png")
    >>> packed = protorect.prepare(
    ...     "folder", folder / "pictures", folder / "packed", size=28, workers=1
    ... )
    >>> packed.splits, packed.split("train").images.shape
    (('train', 'val', 'test'), (6, 28, 28, 3))
    >>> scratch.cleanup()
    """
    PackingOptions(size=size, channels=channels, crop=crop, seed=seed, workers=workers)
    if split is not None and not isinstance(split, ClassSplit):
        split = checked_fractions(split, f"split {split!r}", "a ClassSplit")
    known = find_dataset(name)
    if crop == "boxes" and not known.crop:
        raise OptionError(f"crop is 'boxes', but {name} has no bounding boxes; use another crop.")
    size = known.size if size is None else size
    dataset = replace(
        known,
        size=size,
        channels=known.channels if channels is None else channels,
        crop_padding=round(known.crop_padding * size / known.size),
    )
    workers = processors() if workers is None else workers
    root, out = Path(root), Path(out)
    check_apart(root, out)
    with atomic_folder(out) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        splits, found = find_splits(dataset, root, scratch, split, seed, crop)
        remarks = [*found.remarks, *_without_group(dataset, splits)]
        results = _pack(dataset, splits, folder, workers, found.check, remarks, progress)
        shutil.rmtree(scratch)
        first = next(iter(results))  # train, unless the data set has only test classes
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "dataset": dataset.name,
            "size": dataset.size,
            "channels": dataset.channels,
            "flip": dataset.flip,
            "crop_padding": dataset.crop_padding,
            "mean": results[first].mean,
            "std": results[first].std,
            "statistics_of": first,
            "unreadable": [one for result in results.values() for one in result.unreadable],
            "left_out": found.unused,
            "remarks": remarks,
            **({"crop": found.crop} if found.crop else {}),
            "splits": {name: result.record for name, result in results.items()},
            "source": {
                "root": printable(root.resolve().name),
                "split": _split_origin(split, seed, dataset, found),
            },
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return PackedDataset.open(out)


def check_apart(root: Path, out: Path) -> None:
    """Raise DataError if `out` is inside the folder of the pictures."""
    if root.is_dir() and out.resolve().is_relative_to(root.resolve()):
        raise DataError(
            f"{printable(out)} is inside {printable(root)}, where it would be taken for "
            "a class; choose another output path."
        )


def find_splits(
    dataset: Dataset,
    root: Path,
    scratch: Path,
    split: ClassSplit | Fractions | None,
    seed: int,
    crop: str = AUTO,
) -> tuple[dict[str, PicturesByClass], DatasetPictures]:
    """Find the pictures of each split that has classes, and all that the layout found."""
    class_split = split if isinstance(split, ClassSplit) else dataset.split
    pictures = dataset.find_classes(root, scratch, class_split)
    classes = _class_names(dataset, root, pictures.by_class, class_split)
    if isinstance(split, tuple):
        chosen = fraction_split(classes, split, seed)
    else:
        chosen = class_split or pictures.split or fraction_split(classes, DEFAULT_FRACTIONS, seed)
    if len(classes) < 2:
        raise DataError(
            f"{printable(root)} has one class, {classes[0]}; few-shot tasks need at least two."
        )
    empty = [name for name in classes if not pictures.by_class[name]]
    if empty:
        more = f", nor have {len(empty) - 1} more ({first_names(empty[1:])})" if empty[1:] else ""
        raise DataError(
            f"class {empty[0]} has no picture{more}. "
            "Add at least one .jpg or .png, or remove the folder."
        )
    if dataset.crop:
        pictures = crop_to_boxes(pictures, root, crop, dataset.crop)
    splits = {
        name: {class_name: pictures.by_class[class_name] for class_name in chosen[name]}
        for name in SPLITS
        if chosen[name]
    }
    not_in_split = [
        f"{name}/ ({len(pictures.by_class[name])} pictures, not in the split)"
        for name in sorted(set(pictures.by_class) - chosen.names)
    ]
    return splits, replace(pictures, unused=(*pictures.unused, *not_in_split))


def _without_group(dataset: Dataset, splits: dict[str, PicturesByClass]) -> list[str]:
    """A remark on pictures whose names do not say what they are near-duplicates of."""
    if not dataset.groups:
        return []
    alone = [
        picture.path
        for classes in splits.values()
        for pictures in classes.values()
        for picture in pictures
        if not re.match(dataset.groups, picture.path.split("/")[-1])
    ]
    if not alone:
        return []
    return [
        f"the names of {len(alone)} pictures ({first_names(alone)}) do not say which of them are "
        "near-duplicates; each is taken as a group of its own."
    ]


def _class_names(
    dataset: Dataset, root: Path, by_class: PicturesByClass, class_split: ClassSplit | None
) -> list[str]:
    """Return the names of the classes to pack, after checking that none is missing."""
    names = sorted(by_class if class_split is None else class_split.names)
    missing = [name for name in names if name not in by_class]
    if by_class and not missing:
        return names
    reason = "no class was found"
    if by_class:
        reason = f"{len(missing)} of {len(names)} classes are missing ({first_names(missing)})"
    raise DataError(
        f"{printable(root)} cannot be used as {dataset.name}: {reason}. "
        f"Expected: {dataset.expects}. Found: {describe_contents(root)}."
    )


def _pack(
    dataset: Dataset,
    splits: dict[str, PicturesByClass],
    folder: Path,
    workers: int,
    check: PictureCheck,
    remarks: list[str],
    progress: Progress | None,
) -> dict[str, PackingResult]:
    """Pack each split, check each picture, add to the remarks, and write the index of all."""
    counts = {name: sum(map(len, classes.values())) for name, classes in splits.items()}
    results: dict[str, PackingResult] = {}
    # Not in threads, which would wait for each other where pictures are small: Omniglot takes half
    # the time in processes.
    with (
        processes(workers, partial(share_decoding_memory, workers)) as run,
        (folder / INDEX).open("w", newline="", encoding="utf-8") as file,
    ):
        index = csv.writer(file, lineterminator="\n")
        index.writerow(COLUMNS)

        def write_line(split: str, row: int | str, line: IndexLine) -> None:
            if remark := check(line):
                remarks.append(remark)
            index.writerow([harmless(cell) for cell in (split, row, *line)])

        done = 0
        for name, classes in splits.items():
            report = part_of(progress, done, sum(counts.values()))
            results[name] = pack_split(name, classes, dataset, folder, run, write_line, report)
            done += counts[name]
    return results


def _split_origin(
    split: ClassSplit | Fractions | None, seed: int, dataset: Dataset, found: DatasetPictures
) -> str:
    """Describe where the split comes from, as `find_splits` chose it, for the manifest."""
    if isinstance(split, ClassSplit):
        return "given class by class"
    if split is None and dataset.split is not None:
        return "as published"
    if split is None and found.split is not None:
        return "by the folders of the splits"
    default = "default " if split is None else ""
    shares = ", ".join(f"{share:g}" for share in split or DEFAULT_FRACTIONS)
    return f"{default}fractions {shares} with seed {seed}"
