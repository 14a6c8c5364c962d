"""Class folders for training and validation, as Ultralytics and torchvision read them.

Every class is divided by the same share, at random by a seed; a class of one picture is in train.
"""

import random
from pathlib import Path

from protorect.labeling.exports import Labeled, Rows
from protorect.labeling.exports.placing import place_pictures

FOLDER = True


def write(rows: Rows, path: Path) -> None:
    """Place every picture in train/CLASS or val/CLASS."""
    placed: list[tuple[Labeled, str]] = []
    for name in rows.classes:
        members = sorted((row for row in rows if row.label == name), key=lambda row: row.path)
        random.Random(f"{rows.options.seed} {name}").shuffle(members)
        held_out = round(rows.options.validation * len(members))
        if rows.options.validation > 0:
            held_out = max(held_out, 1)
        held_out = min(held_out, len(members) - 1)
        for place, row in enumerate(members):
            placed.append((row, f"{'val' if place < held_out else 'train'}/{name}"))
    place_pictures(placed, path, rows.options.copy)
    for part in ("train", "val"):  # programs expect the same classes in both
        for name in rows.classes:
            (path / part / name).mkdir(parents=True, exist_ok=True)
