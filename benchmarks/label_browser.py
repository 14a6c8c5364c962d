"""`python -m benchmarks.label_browser PICTURES`: a person labels a folder on the page, simulated.

PICTURES has one folder per class, as the grocery photographs have; the folder of a picture is what
the simulated person sees in it. Real keys and clicks in a real browser (Chromium on the PATH): name
the first classes, then review class after class, marking the wrong pictures and accepting the rest,
until 99 % of the labels are right. An act (a label, an acceptance, a new class) counts as one
second, a picture that is looked at as a quarter of one. Writes results/label_browser.json and the
table of docs/label.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.browser import Browser
from benchmarks.documents import RESULTS, write_document
from protorect._utils.files import write_text
from protorect.app.server import Address, serving
from protorect.labeling.session import LabelingSession
from protorect.report.table import Table

ACT, LOOK = 1.0, 0.25  # seconds
GOAL = 0.99
TILES = "document.querySelectorAll('.grid .tile:not(.wait)').length"
READ = """[...document.querySelectorAll('.grid .tile')].map(tile => ({
    index: Number(tile.dataset.index), status: tile.dataset.status, name: tile.title,
    selected: tile.getAttribute('aria-selected') === 'true',
    top: tile.getBoundingClientRect().top, bottom: tile.getBoundingClientRect().bottom,
})).sort((a, b) => a.index - b.index)"""


class Person:
    """Knows the class of every picture, and how long looking and acting takes."""

    def __init__(self, page: Browser, session: LabelingSession) -> None:
        self.page, self.session = page, session
        self.looked: set[tuple[str, str]] = set()  # pictures, each with the list it was seen in
        self.clicks = 0  # and keys

    @property
    def seconds(self) -> float:
        """The time that the person has needed."""
        return ACT * self.acts + LOOK * len(self.looked)

    @property
    def acts(self) -> int:
        """How many acts the session has had."""
        return self.session.state().act

    def press(self, *keys: str, **options: bool) -> None:
        """Press keys."""
        self.page.press(*keys, **options)
        self.clicks += len(keys)

    def look(self, where: str) -> list[dict[str, Any]]:
        """The tiles wholly in view, with what they show."""
        self.page.wait_for(f"{TILES} > 0")
        frame = "document.querySelector('.scroll').getBoundingClientRect()"
        top, bottom = self.page.run(f"[{frame}.top, {frame}.bottom]")
        tiles = [
            tile
            for tile in self.page.run(READ)
            if tile["name"] and tile["top"] >= top - 1 and tile["bottom"] <= bottom + 1
        ]
        self.looked |= {(where, tile["name"]) for tile in tiles}
        return [tile | {"class": Path(tile["name"]).parent.name} for tile in tiles]

    def click(self, tile: dict[str, Any]) -> None:
        """Click a picture."""
        self.page.click(f".grid .tile[data-index='{tile['index']}']")
        self.clicks += 1

    def settle(self) -> None:
        """Wait until the server has answered and the page shows it."""
        self.page.wait_for("document.querySelector('#saved').innerText.trim() === 'Saved'")
        self.page.wait_for("!document.querySelector('#strip').classList.contains('busy')")
        self.session.wait(10)

    def accuracy(self) -> float:
        """The share of all pictures whose label is the right one."""
        rows = self.session.pictures(limit=10**6).pictures
        right = [
            row.label == Path(row.name).parent.name and row.status not in ("unsure", "unknown")
            for row in rows
        ]
        return sum(right) / len(right)


def name_classes(person: Person) -> None:
    """Name every class that is seen among the pictures that differ from each other."""
    known: set[str] = set()
    while True:
        new = [tile for tile in person.look("start") if tile["class"] not in known]
        if not new:
            return
        name = new[0]["class"]
        for tile in [tile for tile in new if tile["class"] == name]:
            person.click(tile)
        person.page.run("document.querySelector('#first-name').focus()")
        person.page.type(name)
        person.press("Enter")
        person.page.run("document.activeElement.blur()")
        known.add(name)
        person.settle()


def review(person: Person, name: str) -> None:
    """Look at the proposals of a class page by page; label the wrong ones, accept the rest."""
    person.page.run(
        f"location.hash = '#class?' + new URLSearchParams({{name: {json.dumps(name)}}})"
    )
    person.clicks += 1
    person.page.wait_for(f"document.querySelector('h1')?.innerText === {json.dumps(name)}")
    while person.session.state().json() and _proposed(person, name):
        person.page.wait_for(f"{TILES} > 0")
        page = [tile for tile in person.look(name) if tile["status"] == "proposed"]
        if not page:
            return
        wrong: dict[str, list[dict[str, Any]]] = {}
        for tile in page:
            if tile["class"] != name:
                wrong.setdefault(tile["class"], []).append(tile)
        for other, tiles in wrong.items():
            for tile in tiles:
                person.click(tile)
            choose(person, other)
            person.settle()
        person.press("Enter")
        person.settle()
        if not _proposed(person, name):
            return
        person.page.reload()
        person.page.wait_for(f"{TILES} > 0 || document.querySelector('.blank') !== null")


def choose(person: Person, name: str) -> None:
    """Give the selected pictures a class, by typing its name."""
    person.press("c")
    person.page.wait_for("document.querySelector('#palette').open")
    person.page.type(name)
    person.press("Enter")


def one_at_a_time(person: Person, kind: str) -> None:
    """Give the unsure or unknown pictures of a grid their class."""
    person.page.run(f"location.hash = '#{kind}?mode=grid'")
    person.clicks += 1
    person.page.wait_for(f"document.querySelector('h1')?.innerText === '{kind.capitalize()}'")
    while _waiting(person, kind):
        person.page.wait_for(f"{TILES} > 0")
        tiles = [tile for tile in person.look(kind) if tile["status"] == kind]
        if not tiles:
            return
        name = tiles[0]["class"]
        for tile in [tile for tile in tiles if tile["class"] == name]:
            person.click(tile)
        choose(person, name)
        person.settle()
        if person.accuracy() >= GOAL:
            return


def _proposed(person: Person, name: str) -> int:
    classes = person.session.state().json()["classes"]
    return next((one["proposed"] for one in classes if one["name"] == name), 0)


def _waiting(person: Person, kind: str) -> int:
    return int(person.session.state().json()[kind])


def label(person: Person) -> list[dict[str, float]]:
    """Label until the goal is reached; the accuracy after each step."""
    course = []

    def note(step: str) -> bool:
        accuracy = person.accuracy()
        course.append(
            {
                "step": step,
                "acts": person.acts,
                "clicks": person.clicks,
                "seconds": person.seconds,
                "accuracy": accuracy,
            }
        )
        print(f"{step}: {accuracy:.1%} right after {person.seconds:.0f} s", flush=True)
        return accuracy >= GOAL

    name_classes(person)
    if note("classes named"):
        return course
    for _ in range(3):
        names = [one["name"] for one in person.session.state().json()["classes"]]
        for name in names:
            if _proposed(person, name):
                review(person, name)
                if person.accuracy() >= GOAL:
                    note(f"{name} reviewed")
                    return course
        note("classes reviewed")
        for kind in ("unsure", "unknown"):
            one_at_a_time(person, kind)
            if note(f"{kind} labeled"):
                return course
    return course


def main(folder: str) -> None:
    """Label, and write the results and the document."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        session = stack.enter_context(LabelingSession.open(Path(scratch) / "project", folder))
        session.wait()
        address = stack.enter_context(serving(session, Address()))
        page = stack.enter_context(Browser(Path(scratch) / "profile", 1440, 900))
        page.open(address.with_token)
        page.wait_for(f"{TILES} > 0")
        person = Person(page, session)
        course = label(person)
        pictures = session.state().json()["pictures"]
    results = {
        "pictures": pictures,
        "classes": len({Path(path).name for path in Path(folder).iterdir() if Path(path).is_dir()}),
        "goal": GOAL,
        "seconds_per_act": ACT,
        "seconds_per_look": LOOK,
        "acts": course[-1]["acts"],
        "clicks": person.clicks,
        "looked": len(person.looked),
        "course": course,
    }
    write_text(RESULTS / "label_browser.json", json.dumps(results, indent=1) + "\n")
    write_document("label")


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """What is right after each step."""
    caption = (
        f"{results['pictures']} photographs of {results['classes']} classes, labeled on the page "
        f"by a simulated person: {results['seconds_per_act']:g} s per act, "
        f"{results['seconds_per_look']:g} s per picture that is looked at."
    )
    rows = [
        [
            row["step"],
            str(row["acts"]),
            str(row["clicks"]),
            f"{row['seconds']:.0f}",
            f"{100 * row['accuracy']:.1f} %",
        ]
        for row in results["course"]
    ]
    return {
        "browser": Table(caption, ["step", "acts", "keys and clicks", "seconds", "right"], rows)
    }


if __name__ == "__main__":
    main(sys.argv[1])
