"""The contact sheet: one page of all pictures by class, the most probable first.

Its thumbnails are square, and named by the content of their pictures.
"""

import base64
import hashlib
import io
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from PIL import Image

from protorect._utils.files import write_errors
from protorect._utils.parallel import processors, threads
from protorect._utils.progress import Progress
from protorect._utils.text import printable
from protorect.images.decode import decode
from protorect.images.stored import StoredPicture, UnreadableError
from protorect.labeling.placements import Placement
from protorect.labeling.prediction import UNKNOWN, UNSURE
from protorect.report.page import load_template
from protorect.sorting.evaluation import Evaluation

DOUBTFUL = 0.8  # a label of less probability is marked
SIDE, QUALITY = 160, 78  # of a thumbnail, in pixels and as JPEG
_SET_ASIDE = {  # titles and notes
    UNSURE: ("Unsure", "Too close to call between two classes."),
    UNKNOWN: ("Unknown", "Unlike the examples of every class."),
}


def contact_sheet(
    placements: Sequence[Placement],
    classes: Sequence[str],
    examples: Sequence[tuple[str, str, str]],
    thumbnails: str,
    evaluation: Evaluation | None = None,
    confusion: str = "",
) -> str:
    """Render the page as HTML; everything is escaped.

    Classes are shown in the given order, with their `examples` (file, label, SHA-256); the folder
    `thumbnails` is relative to the page. Where the true labels are known, `evaluation` is shown
    with its confusion matrix as SVG.
    """
    by_folder: defaultdict[str, list[Placement]] = defaultdict(list)
    for placement in placements:
        by_folder[placement.prediction.folder].append(placement)
    by_label: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for file, label, content in examples:
        name = printable(os.path.basename(file))
        by_label[label].append((f"{thumbnails}/{_thumbnail_name(content)}", name))
    groups = []
    for name in (*classes, UNSURE, UNKNOWN):
        title, note = _SET_ASIDE.get(name, (name, ""))
        tiles = [_tile(one, thumbnails, name in _SET_ASIDE) for one in _ordered(by_folder[name])]
        groups.append({"title": title, "note": note, "examples": by_label[name], "tiles": tiles})
    confused = [
        (true, label, [_tile(placement, thumbnails) for placement in some])
        for true, label, some in (evaluation.confused if evaluation else ())
    ]
    script = Path(__file__).with_name("contact_sheet.js").read_text(encoding="utf-8")
    return load_template("sorting", "contact_sheet.html.jinja").render(
        total=len(placements),
        groups=groups,
        evaluation=evaluation,
        confused=confused,
        confusion=Markup(confusion),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _ordered(placements: Sequence[Placement]) -> list[Placement]:
    """The pictures of one folder: the most probable first, unknown ones by their OOD score."""

    def key(placement: Placement) -> float:
        row = placement.prediction
        return row.ood if row.folder == UNKNOWN else -row.probability

    return sorted(placements, key=key)


def _tile(placement: Placement, thumbnails: str, with_label: bool = False) -> dict[str, Any]:
    """One picture on the page, for the template."""
    row = placement.prediction
    percent = f"{100 * row.probability:.0f} %"
    details = [f"{row.label} {percent}"]
    if row.runner_up:
        details.append(f"{row.runner_up} {100 * (row.probability - row.margin):.0f} %")
    details.append(f"out-of-distribution score {row.ood:.2f}")
    return {
        "link": "./" + quote(os.fsencode(placement.target)),
        "thumbnail": f"{thumbnails}/{_thumbnail_name(placement.content)}",
        "name": printable(os.path.basename(row.path)),
        "caption": f"{row.label} {percent}" if with_label else percent,
        "detail": ", ".join(details),
        "doubtful": row.folder in _SET_ASIDE or row.probability < DOUBTFUL,
    }


def make_thumbnails(
    folder: Path, pictures: Sequence[tuple[str, str]], progress: Progress | None = None
) -> None:
    """Make the missing thumbnails of pictures (file, SHA-256); an unreadable one gets none."""
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        existing = set(os.listdir(folder))
        for name in existing:
            if name.startswith("."):  # of a sorting that was killed
                (folder / name).unlink()
    by_name = {_thumbnail_name(content): file for file, content in pictures}
    missing = [(folder / name, file) for name, file in by_name.items() if name not in existing]
    with threads(processors()) as map_threads:
        for done, _ in enumerate(map_threads(_make_thumbnail, missing), 1):
            if progress is not None:
                progress(done, len(missing))


def _make_thumbnail(target_and_file: tuple[Path, str]) -> None:
    target, file = target_and_file
    try:
        with StoredPicture.from_file(file).content() as content:
            pixels = decode(content, SIDE, 3).pixels
    except UnreadableError:
        return
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "JPEG", quality=QUALITY)
    temporary = target.with_name(f".{target.name}")
    with write_errors(target):
        temporary.write_bytes(data.getvalue())
        os.replace(temporary, target)


def _thumbnail_name(content: str) -> str:
    """The file name of the thumbnail of the picture with this SHA-256."""
    return f"{content[:32]}.jpg"
