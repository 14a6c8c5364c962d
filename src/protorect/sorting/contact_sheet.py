"""The contact sheet: all pictures by class, the most probable first; many on several pages.

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

from markupsafe import Markup, escape
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
LARGEST_PAGE = 5 * 10**6  # bytes
_PER_TILE = 200  # bytes of a picture on the page beside its texts, at most
_FIXED = 100_000  # bytes of style, script and heading, at most
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
    largest: int = LARGEST_PAGE,
) -> list[str]:
    """Render the pages as HTML, each of at most `largest` bytes; everything is escaped.

    Classes are shown in the given order, with their `examples` (file, label, SHA-256); the folder
    `thumbnails` is relative to the page. Where the true labels are known, `evaluation` is shown
    with its confusion matrix as SVG, on the first page. A page is named by `page_name`.
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
    first = sum(_size(tile) for _, _, some in confused for tile in some) + len(confusion.encode())
    pages = _divided(groups, largest - _FIXED, first)
    script = Path(__file__).with_name("contact_sheet.js").read_text(encoding="utf-8")
    template = load_template("sorting", "contact_sheet.html.jinja")
    counts = [(group["title"], len(group["tiles"])) for group in groups]
    return [
        template.render(
            total=len(placements),
            counts=counts,
            groups=page,
            number=number,
            pages=[page_name(one) for one in range(len(pages))],
            page_of=_pages_of(pages),
            evaluation=evaluation if number == 0 else None,
            confused=confused,
            confusion=Markup(confusion),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
        for number, page in enumerate(pages)
    ]


def page_name(number: int) -> str:
    """The file name of a page, from 0."""
    return "index.html" if number == 0 else f"index-{number + 1}.html"


def _divided(groups: list[dict[str, Any]], largest: int, first: int) -> list[list[dict[str, Any]]]:
    """The groups of each page; a group is divided where its pictures do not fit."""
    pages: list[list[dict[str, Any]]] = [[]]
    size = first
    for place, group in enumerate(groups):
        whole = {**group, "id": f"g{place}", "count": len(group["tiles"]), "tiles": []}
        pages[-1].append(whole)
        size += sum(_PER_TILE + 2 * _length(file + name) for file, name in group["examples"])
        for tile in group["tiles"]:
            if size + _size(tile) > largest and (pages[-1][-1]["tiles"] or size > first):
                pages.append([{**whole, "examples": [], "note": "", "tiles": []}])
                size = 0
            size += _size(tile)
            pages[-1][-1]["tiles"].append(tile)
    return pages


def _pages_of(pages: list[list[dict[str, Any]]]) -> dict[str, int]:
    """The first page with pictures of each group, by its title."""
    found: dict[str, int] = {}
    for number, page in enumerate(pages):
        for group in page:
            if group["tiles"] or number == 0:
                found.setdefault(group["title"], number)
    return found


def _size(tile: dict[str, Any]) -> int:
    """Bytes of a picture on a page, at most."""
    return _PER_TILE + sum(_length(text) for text in tile.values() if isinstance(text, str))


def _length(text: str) -> int:
    return len(str(escape(text)).encode())


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
