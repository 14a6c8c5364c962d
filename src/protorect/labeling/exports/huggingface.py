"""A folder with metadata.jsonl: `datasets.load_dataset("imagefolder", data_dir=...)`."""

import json
from pathlib import Path

from protorect._utils.text import printable
from protorect.labeling.exports import Rows
from protorect.labeling.exports.placing import place_pictures

FOLDER = True


def write(rows: Rows, path: Path) -> None:
    """Place the pictures in train/, and write a line about each."""
    names = place_pictures([(row, "train") for row in rows], path, rows.options.copy)
    lines = [
        json.dumps(
            {
                "file_name": Path(name).name,
                "label": row.label,
                "probability": round(row.probability, 4),
                "status": row.status,
                "source": printable(row.path),
            }
        )
        for row, name in zip(rows, names, strict=True)
    ]
    (path / "train" / "metadata.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
