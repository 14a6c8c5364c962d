"""A FiftyOneImageClassificationDataset: pictures in data/, and labels.json."""

import json
import os
from pathlib import Path

from protorect.labeling.exports import Labeled, Rows
from protorect.labeling.exports.placing import place_pictures

FOLDER = True


def write(rows: Rows, path: Path) -> None:
    """Place the pictures, and write the position of the class of each by its name."""
    # The key of a picture is its path without the suffix, so that 1.jpg and 1.png need two names.
    stems: dict[str, int] = {}
    folders: list[tuple[Labeled, str]] = []
    for row in rows:
        stem = os.path.splitext(os.path.basename(row.path))[0].casefold()
        stems[stem] = stems.get(stem, 0) + 1
        folders.append((row, "data" if stems[stem] == 1 else f"data/{stems[stem]}"))
    names = place_pictures(folders, path, rows.options.copy)
    positions = {name: position for position, name in enumerate(rows.classes)}
    labels = {
        os.path.splitext(name)[0].removeprefix("data/"): positions[row.label]
        for row, name in zip(rows, names, strict=True)
    }
    document = {"classes": rows.classes, "labels": labels}
    (path / "labels.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
