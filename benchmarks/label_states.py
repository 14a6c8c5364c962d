"""`python -m benchmarks.label_states PICTURES MOCKUP OUT`: states of the page beside its design.

PICTURES has one folder per class, as the grocery photographs have; MOCKUP is the HTML file whose
addresses `#grid`, `#changes` and so on show the states as they were designed. Writes OUT/STATE.png,
the design on the left and the page on the right. Needs Chromium on the PATH.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from PIL import Image

from benchmarks.browser import Browser
from benchmarks.label_pictures import SETTLED, TILES, best_correction, give_examples, label_on_page
from protorect.app.server import Address, serving
from protorect.labeling.session import LabelingSession

WIDE, NARROW = (1440, 900), (390, 844)
READING = """import('/static/js/store.js').then(({ setState, store }) => setState({ ...store.state,
    progress: { done: 1288, total: 2418, per_second: 61, seconds_left: 19 } }))"""
FINISHED = """import('/static/js/store.js').then(({ setState, store }) =>
    setState({ ...store.state, progress: null }))"""


class Pairs:
    """Photographs of the design and of the page, side by side."""

    def __init__(self, page: Browser, design: Browser, mockup: Path, out: Path) -> None:
        self.page, self.design, self.mockup, self.out = page, design, mockup, out

    def take(self, state: str, size: tuple[int, int] = WIDE, dark: bool = False) -> None:
        """Write the pair of one state."""
        kind = ("-dark" if dark else "") + ("-phone" if size == NARROW else "")
        for browser in (self.design, self.page):
            browser.resize(*size, dark)
        self.design.open("about:blank")
        self.design.open(f"{self.mockup.as_uri()}#{state}")
        images = []
        for browser in (self.design, self.page):
            browser.wait_for(SETTLED)
            browser.screenshot(self.out / "one.png")
            images.append(Image.open(self.out / "one.png").convert("RGB"))
        both = Image.new("RGB", (2 * size[0] + 10, size[1]), "red")
        both.paste(images[0], (0, 0))
        both.paste(images[1], (size[0] + 10, 0))
        both.save(self.out / f"{state}{kind}.png")
        (self.out / "one.png").unlink()
        print(f"{state}{kind}", flush=True)

    def show(self, view: str, ready: str) -> None:
        """Go to a view of the page, and wait until a condition holds."""
        self.page.resize(*WIDE)
        self.page.run(f"location.hash = {view!r}")
        self.page.wait_for(ready)


def has(selector: str) -> str:
    """Whether an element is on the page."""
    return f"document.querySelector({selector!r}) !== null"


def dialog(pairs: Pairs, state: str, key: str, element: str) -> None:
    """A dialog that a key opens."""
    pairs.page.press(key)
    pairs.page.wait_for(f"document.querySelector({element!r}).open")
    pairs.take(state)
    pairs.page.press("Escape")
    pairs.page.wait_for(f"document.querySelector({element!r}).open", False)


def photograph_class(pairs: Pairs, session: LabelingSession) -> None:
    """The review of a class: before, during and after a correction."""
    page, (number, name, right) = pairs.page, best_correction(session)
    pairs.show(f"#class?name={name}", f"document.querySelector('h1').innerText === {name!r}")
    page.wait_for(f"{TILES} > 0")
    page.press("ArrowRight", " ", "ArrowRight", " ")
    pairs.take("grid")
    pairs.take("grid", dark=True)
    pairs.take("grid", NARROW)
    page.resize(*WIDE)
    page.press("c")
    page.wait_for("document.querySelector('#palette').open")
    page.type("pe")
    pairs.take("palette")
    page.press("Escape", "Escape")
    page.press("v")
    page.wait_for("document.querySelectorAll('#details .near img').length > 0")
    pairs.take("drawer")
    page.press("v")
    label_on_page(page, number, right)
    page.press("w")
    page.wait_for("document.querySelector('h1').innerText === 'What changed'")
    page.wait_for(f"{TILES} > 0")
    pairs.take("changes")
    pairs.take("changes", dark=True)


def photograph_rest(pairs: Pairs, session: LabelingSession) -> None:
    """The other views, the dialogs and the banner."""
    page = pairs.page
    pairs.show("#unsure", has(".card"))
    pairs.take("unsure")
    pairs.take("unsure", NARROW)
    pairs.show("#unknown", has(".group, .blank"))
    pairs.take("groups")
    pairs.show("#audit", has(".check"))
    page.press("Enter", "Enter", "Enter", "x")
    page.wait_for("document.querySelector('.est').innerText.includes('3 of 4')")
    pairs.take("audit")
    pairs.show("#all", f"{TILES} > 0")
    dialog(pairs, "help", "?", "#help")
    dialog(pairs, "export", "e", "#export")
    page.run(READING)
    pairs.take("progress")
    page.run(FINISHED)
    done = session.state().classes[0].name
    while rows := session.pictures(label=done, status=["proposed"], limit=1000).pictures:
        session.label([row.id for row in rows], done)
        session.wait()
    pairs.show(f"#class?name={done}", has(".blank"))
    pairs.take("empty")


def main(folder: str, mockup: str, out: str) -> None:
    """Take all pairs."""
    Path(out).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        project = Path(scratch) / "groceries"
        session = stack.enter_context(LabelingSession.open(project, folder))
        session.wait()
        browsers = [stack.enter_context(Browser(Path(scratch) / name, *WIDE)) for name in "ab"]
        pairs = Pairs(*browsers, Path(mockup).resolve(), Path(out))
        with serving(session, Address()) as address:
            pairs.page.open(address.with_token)
            pairs.page.wait_for(f"{TILES} > 0")
            pairs.page.press(" ", "ArrowRight", " ")
            pairs.take("start")
            give_examples(session)
            pairs.page.reload()
            pairs.page.wait_for(f"{TILES} > 0")
            steps: tuple[Callable[[Pairs, LabelingSession], None], ...]
            steps = photograph_class, photograph_rest
            for step in steps:
                step(pairs, session)
            pairs.show("#all", f"{TILES} > 0")
        pairs.page.wait_for("!document.querySelector('#lost').hidden")
        pairs.take("error")


if __name__ == "__main__":
    main(*sys.argv[1:])
