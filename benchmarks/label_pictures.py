"""`python -m benchmarks.label_pictures PICTURES`: pictures of the labeling page for the documents.

PICTURES has one folder per class, as the grocery photographs have; two pictures of each class are
given as examples. Then the wrong proposal whose correction changes most is corrected. Writes
docs/label.webp, docs/label-unsure.webp and docs/label-phone.webp. Needs Chromium on the PATH.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from PIL import Image

from benchmarks.browser import Browser
from benchmarks.documents import DOCS
from protorect.app.server import Address, serving
from protorect.labeling.session import LabelingSession

EXAMPLES = 2  # per class
FULL_PAGE = 18  # proposals of a class that is shown
TRIED = 12  # corrections, of which the one that changes most is shown
TILES = "document.querySelectorAll('.grid .tile:not(.wait)').length"
SETTLED = "[...document.images].every(image => !image.src || image.complete)"


def class_of(name: str) -> str:
    """The class of a picture: its folder."""
    return Path(name).parent.name.replace("-", " ")


def give_examples(session: LabelingSession) -> None:
    """Label the first pictures of each class."""
    given: dict[str, list[int]] = {}
    for row in session.pictures(order="name", limit=10**6).pictures:
        given.setdefault(class_of(row.name), []).append(row.id)
    for name, ids in given.items():
        session.add_class(name, ids[:EXAMPLES])
    session.wait()


def best_correction(session: LabelingSession) -> tuple[int, str, str]:
    """The wrong proposal whose correction changes most: its number, proposed and right class."""
    rows = session.pictures(status=["proposed"], order="unsure", limit=10**6).pictures
    size = Counter(row.label for row in rows)
    wrong = [
        row for row in rows if row.label != class_of(row.name) and size[row.label] >= FULL_PAGE
    ][:TRIED]
    changed = []
    for row in wrong:
        changed.append(len(session.label([row.id], class_of(row.name)).changed))
        session.undo()
    best = wrong[max(range(len(wrong)), key=changed.__getitem__)]
    return best.id, str(best.label), class_of(best.name)


def label_on_page(page: Browser, number: int, name: str) -> None:
    """Label a picture, and wait until the page shows what else changed."""
    act = f"acts => acts.label([{number}], {name!r})"
    page.run(f"void import('/static/js/acts.js').then({act})")
    page.wait_for("document.querySelector('#strip .did').innerText.includes('labeled 1 picture')")
    page.wait_for("document.querySelector('#strip').className", "strip lit")


def photograph(page: Browser, path: Path, width: int) -> None:
    """Write what the window shows, reduced to a width."""
    page.wait_for(SETTLED)
    page.screenshot(path)
    with Image.open(path) as image:
        reduced = image.convert("RGB").resize((width, round(image.height * width / image.width)))
    path.unlink()
    reduced.save(path.with_suffix(".webp"), quality=82, method=6)


def main(folder: str) -> None:
    """Label a little, and write the pictures."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        project = Path(scratch) / "groceries"
        session = stack.enter_context(LabelingSession.open(project, folder))
        session.wait()
        give_examples(session)
        page = stack.enter_context(Browser(Path(scratch) / "profile", 1440, 900))
        address = stack.enter_context(serving(session, Address()))
        number, name, right = best_correction(session)
        page.open(address.with_token)
        page.wait_for(f"{TILES} > 0")
        page.run(f"location.hash = '#class?' + new URLSearchParams({{ name: {name!r} }})")
        page.wait_for(f"document.querySelector('h1').innerText === {name!r} && {TILES} > 0")
        label_on_page(page, number, right)
        photograph(page, DOCS / "label.png", 1200)
        page.run("location.hash = '#unsure'")
        page.wait_for("document.querySelector('.card') !== null")
        photograph(page, DOCS / "label-unsure.png", 1200)
        page.resize(390, 844)
        page.run(f"location.hash = '#class?' + new URLSearchParams({{ name: {name!r} }})")
        page.wait_for(f"document.querySelector('h1').innerText === {name!r} && {TILES} > 0")
        photograph(page, DOCS / "label-phone.png", 390)


if __name__ == "__main__":
    main(sys.argv[1])
