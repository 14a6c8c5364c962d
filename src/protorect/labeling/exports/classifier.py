"""A saved `ImageClassifier`, made from the pictures that a person has checked."""

from pathlib import Path

from protorect.errors import DataError
from protorect.labeling.exports import CHECKED, Rows
from protorect.labeling.prediction import UNKNOWN

SET_ASIDE, SUFFIX = True, ".safetensors"


def write(rows: Rows, path: Path) -> int:
    """Make a classifier and save it; the number of its examples."""
    from protorect.labeling.classifier import ImageClassifier

    examples: dict[str, list[str]] = {}
    for row in rows:
        if row.status in CHECKED and row.in_class:
            examples.setdefault(row.label, []).append(row.path)
    if len(examples) < 2:
        raise DataError(
            f"a classifier needs checked pictures of at least two classes, there are "
            f"{len(examples)}; label or accept some first."
        )
    if unknown := [row.path for row in rows if row.said_unknown]:
        examples[UNKNOWN] = unknown
    ImageClassifier.from_examples(examples, **dict(rows.classifier)).save(path)
    return sum(map(len, examples.values()))
