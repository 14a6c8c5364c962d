"""miniImageNet as train.zip, val.zip and test.zip: the class folders of each published split."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from protorect.datasets.index import IndexLine
from protorect.datasets.layouts import DatasetPictures, PicturesByClass, class_folders
from protorect.datasets.splits import SPLITS, ClassSplit, known_split
from protorect.errors import DataError

PER_CLASS = 600
SIDE = 84
_REMEDY = "Get the zips again, or extract them and give the folder of class folders."


def find_classes(zips: list[Path], scratch: Path, split: ClassSplit | None) -> DatasetPictures:
    """Find the pictures of the zips, which have to be whole: nothing may be missing or twice."""
    by_class: PicturesByClass = {}
    unused: list[str] = []
    for path in zips:
        found = class_folders.find_classes(path, scratch, split)
        unused += [f"{path.name}/{name}" for name in found.unused]
        for name, pictures in found.by_class.items():
            _check_zip(name, path)
            _check_names(name, [picture.path.split("/")[-1] for picture in pictures], path)
            by_class[name] = [replace(one, path=f"{path.name}/{one.path}") for one in pictures]
    remarks = _check_counts(by_class, zips[0].parent)
    return DatasetPictures(by_class, tuple(unused), remarks=remarks, check=_Pictures().check)


def _check_zip(name: str, path: Path) -> None:
    """Raise DataError if the class is not in the zip of its published split."""
    published = known_split("mini-imagenet")
    own = [one for one in SPLITS if published is not None and name in published[one]]
    if own and own != [path.stem]:
        raise DataError(
            f"{path}: class {name} belongs to {own[0]}.zip; in few-shot learning a class belongs "
            f"to one split only. {_REMEDY}"
        )


def _check_names(class_name: str, names: list[str], path: Path) -> None:
    """Raise DataError if a picture of the class is named after no class, or is there twice."""
    seen: set[str] = set()
    for name in names:
        if not name.startswith(class_name):
            raise DataError(
                f"{path}: {class_name}/{name} should have a name that begins with its class, as "
                f"{class_name}00000005.jpg. {_REMEDY}"
            )
        if name in seen:
            raise DataError(f"{path}: {class_name}/{name} is in it twice. {_REMEDY}")
        seen.add(name)


def _check_counts(by_class: PicturesByClass, root: Path) -> tuple[str, ...]:
    """Raise DataError if classes differ in their number of pictures; remark on other than 600."""
    counts = {name: len(pictures) for name, pictures in by_class.items()}
    if not counts:
        return ()
    [(expected, _)] = Counter(counts.values()).most_common(1)
    others = [name for name, count in counts.items() if count != expected]
    if others:
        more = f" ({len(others) - 1} more classes differ)" if others[1:] else ""
        raise DataError(
            f"{root}: the number of pictures of class {others[0]} is {counts[others[0]]}, that of "
            f"the others {expected}{more}; miniImageNet has {PER_CLASS} of each class. {_REMEDY}"
        )
    if expected == PER_CLASS:
        return ()
    return (f"every class has {expected} pictures; miniImageNet has {PER_CLASS} of each class.",)


@dataclass
class _Pictures:
    """The pictures packed so far, to compare the next one with."""

    paths: dict[str, str] = field(default_factory=dict)  # by SHA-256 of their contents

    def check(self, line: IndexLine) -> str:
        """Raise DataError if a picture has another size; remark on one that is there twice."""
        if line.problem:
            return ""
        if (line.width, line.height) != (SIDE, SIDE):
            raise DataError(
                f"{line.path} has {line.width} x {line.height} pixels; the pictures of these zips "
                f"have {SIDE} x {SIDE}. {_REMEDY}"
            )
        first = self.paths.setdefault(line.sha256, line.path)
        # ImageNet itself has a few pictures under two names.
        return "" if first == line.path else f"{line.path} is the same picture as {first}."
