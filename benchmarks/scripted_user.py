"""`python -m benchmarks.scripted_user PICTURES`: how many acts label a folder of class folders.

A scripted person knows the true class of every picture, its folder. It labels the pictures that the
session suggests, one act each, then reviews the classes page by page: it corrects the wrong ones,
one act each, and accepts the others of the page in one act. Unsure and unknown pictures are looked
at one by one. It stops when 99 % of all pictures have the right label. Writes results/label.json.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import label_browser
from benchmarks.documents import load_results, save_results
from protorect._utils.versions import versions
from protorect.images.find import find_pictures
from protorect.labeling.session import LabelingSession
from protorect.report.table import Table

TARGET, PAGE = 0.99, 24
SUGGESTED = (100,)  # labels before the review
SECONDS_PER_ACT, SECONDS_PER_PICTURE = 1.0, 0.25
SUBSETS, SHARE = 2, 0.8  # random parts of the pictures, to see how much the figures vary


class Person:
    """Acts on a session, and counts."""

    def __init__(self, session: LabelingSession) -> None:
        self.session, self.acts, self.looked, self.corrections = session, 0, 0, 0
        everything = session.pictures(order="name", limit=10**6).pictures
        self.truth = {one.id: Path(one.name).parent.name for one in everything}

    @property
    def accuracy(self) -> float:
        """Share of all pictures whose label is right."""
        rows = self.session.pictures(limit=10**6).pictures
        return sum(one.label == self.truth[one.id] for one in rows) / len(rows)

    @property
    def done(self) -> bool:
        """Whether the target is reached."""
        return self.accuracy >= TARGET

    def label(self, picture: int) -> None:
        """Give a picture its class."""
        self.session.label([picture], self.truth[picture])
        self.acts += 1

    def suggestions(self, count: int) -> None:
        """Label what the session suggests, ten at a time."""
        for _ in range(count // 10):
            for one in self.session.suggest(10).pictures:
                self.looked += 1
                self.label(one.id)
                if self.done:
                    return
            self.session.wait()

    def review(self) -> None:
        """Go through all classes, page by page, and then through what is set aside."""
        for name in [one.name for one in self.session.state().classes]:
            while page := self.session.pictures(label=name, status="proposed", limit=PAGE).pictures:
                self.looked += len(page)
                wrong = [one.id for one in page if self.truth[one.id] != name]
                for picture in wrong:
                    self.corrections += 1
                    self.label(picture)
                right = [one.id for one in page if one.id not in wrong]
                if right:
                    self.session.label(right, name)
                    self.acts += 1
                if self.done:
                    return
                self.session.wait()
        for aside in ("_unsure", "_unknown"):
            for one in self.session.pictures(label=aside, limit=10**6).pictures:
                self.looked += 1
                self.label(one.id)
                if self.done:
                    return


def measure(pictures: list[Path], suggested: int, cache: Path) -> dict[str, Any]:
    """Acts, pictures looked at, and simulated seconds until the target is reached."""
    with (
        TemporaryDirectory(prefix="protorect-") as scratch,
        LabelingSession.open(Path(scratch) / "project", pictures, cache=cache) as session,
    ):
        session.wait()
        person = Person(session)
        person.suggestions(suggested)
        after = person.accuracy
        if not person.done:
            person.review()
        return {
            "pictures": len(person.truth),
            "suggested": suggested,
            "after_suggestions": after,
            "acts": person.acts,
            "corrections": person.corrections,
            "looked": person.looked,
            "seconds": SECONDS_PER_ACT * person.acts + SECONDS_PER_PICTURE * person.looked,
            "accuracy": person.accuracy,
        }


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """One row per number of suggestions."""
    header = ["labels before the review", "right after them", "acts", "acts, parts of the pictures"]
    rows = []
    for one in results["whole"]:
        parts = [part["acts"] for part in results["parts"] if part["suggested"] == one["suggested"]]
        rows.append(
            [
                str(one["suggested"]),
                f"{100 * one['after_suggestions']:.1f} %",
                str(one["acts"]),
                f"{min(parts)} to {max(parts)}" if parts else "",
                str(one["looked"]),
                f"{one['seconds'] / 60:.1f} min",
            ]
        )
    count = results["whole"][0]["pictures"]
    note = f"{count} pictures; parts are {SUBSETS} random choices of {SHARE:.0%} of them."
    table = Table(note, [*header, "pictures looked at", "simulated time"], rows)
    # The same document shows what a person needs on the page.
    return {"label-user": table, **label_browser.tables(load_results("label_browser"))}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scripted_user", description=__doc__)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--cache", type=Path, help="cached features (a temporary folder)")
    options = parser.parse_args()
    files = [Path(one.file) for one in find_pictures(options.pictures).pictures]
    whole, parts = [], []
    with TemporaryDirectory(prefix="protorect-") as scratch:
        cache = options.cache or Path(scratch)
        for suggested in SUGGESTED:
            whole.append(measure(files, suggested, cache))
            print(whole[-1], flush=True)
        for seed in range(SUBSETS):
            some = random.Random(seed).sample(files, round(SHARE * len(files)))
            for suggested in SUGGESTED:
                parts.append(measure(sorted(some), suggested, cache))
                print(parts[-1], flush=True)
    save_results("label", {"machine": versions(), "whole": whole, "parts": parts})


if __name__ == "__main__":
    main()
