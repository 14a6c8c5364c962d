"""Tasks of Label Studio: what people said as annotations, everything else as predictions.

Label Studio serves files of its own machine under /data/local-files/ if it is started with
LOCAL_FILES_SERVING_ENABLED=true and LOCAL_FILES_DOCUMENT_ROOT=/. The labeling interface has an
`Image` named image and `Choices` named label.
"""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from protorect import __version__
from protorect._utils.text import printable
from protorect.labeling.exports import CHECKED, Labeled, Rows

SET_ASIDE, SUFFIX = True, ".json"


def write(rows: Rows, path: Path) -> None:
    """Write a list of tasks."""
    tasks = [_task(row) for row in rows]
    path.write_text(json.dumps(tasks, indent=1) + "\n", encoding="utf-8")


def _task(row: Labeled) -> dict[str, Any]:
    place = quote(os.fsencode(os.path.abspath(row.path).lstrip(os.sep).replace(os.sep, "/")))
    data = {"image": f"/data/local-files/?d={place}", "path": printable(row.path)}
    annotations, predictions = [], []
    if row.label and row.status in CHECKED:
        annotations.append({"result": [_choice(row.label)]})
    elif row.label:
        prediction = {"model_version": f"protorect {__version__}", "result": [_choice(row.label)]}
        predictions.append({**prediction, "score": round(row.probability, 4)})
    meta = {"status": row.status}
    return {"data": data, "meta": meta, "annotations": annotations, "predictions": predictions}


def _choice(label: str) -> dict[str, Any]:
    value = {"choices": [label]}
    return {"from_name": "label", "to_name": "image", "type": "choices", "value": value}
