"""Speed of the labeling page in a real browser: first pictures, frames, from the key to the tile.

The command runs as a person starts it; the browser is open already. Needs Chromium on the PATH.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import Request, urlopen

import numpy as np

from benchmarks.browser import Browser
from benchmarks.labeling import Work, make_project
from benchmarks.machine import busy_cores, disturbance
from protorect.report.table import Table

STEP = 50  # pixels per frame: 3,000 a second
IN_VIEW = """(() => {
    const view = document.querySelector('.scroll')?.getBoundingClientRect();
    const images = [...document.querySelectorAll('.grid .tile img')].filter(image => {
        const { top, bottom } = image.getBoundingClientRect();
        return view && bottom > view.top && top < view.bottom;
    });
    return images.length > 0 && images.every(image => image.complete && image.naturalWidth > 0);
})()"""
FRAMES = """(async () => {{
    const view = document.querySelector('.scroll'), times = [];
    let last = await new Promise(requestAnimationFrame);
    for (let i = 0; i < {frames}; i += 1) {{
        view.scrollTop += {step};
        const now = await new Promise(requestAnimationFrame);
        times.push(now - last);
        last = now;
    }}
    return times;
}})()"""
# From the key until the frame after the change of the tile has been drawn.
WATCH_KEYS = """window.keyTimes = [];
addEventListener('keydown', ({ timeStamp }) => {
    const tile = document.activeElement;
    const seen = new MutationObserver(() => {
        if (tile.dataset.status !== 'example') return;
        seen.disconnect();
        requestAnimationFrame(() => setTimeout(() => keyTimes.push(performance.now() - timeStamp)));
    });
    seen.observe(tile, { attributes: true });
}, { capture: true });"""
SAVED = "document.querySelector('#saved').innerText.trim()"


@dataclass(frozen=True)
class Page:
    """One project on the page."""

    work: Work
    frames: int
    keys: int


FULL = (Page(Work(10_000, 20, 0), 600, 30), Page(Work(100_000, 100, 0), 600, 10))
SMALL = (Page(Work(120, 4, 0, dim=16), 5, 2),)
FOLDER = 400  # pictures that were embedded before
LONGEST = 600  # seconds of embedding them


def measure(small: bool = False) -> dict[str, Any]:
    """All projects; the small version only shows that it runs."""
    return {
        "busy": busy_cores(),
        "projects": [measure_page(one) for one in (SMALL if small else FULL)],
        "folder": measure_folder(24 if small else FOLDER),
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """One row per project, and the start with a folder."""
    header = ["pictures", "classes", "first pictures", "frame, median", "frame, 95 %"]
    header += ["to the end", "key to tile, median", "key to tile, 95 %"]
    rows = [
        [
            f"{one['pictures']:,}",
            str(one["classes"]),
            f"{one['first']:.1f} s",
            f"{one['frame']:.1f} ms",
            f"{one['frame_p95']:.1f} ms",
            f"{one['end']:.2f} s",
            f"{one['key']:.0f} ms",
            f"{one['key_p95']:.0f} ms",
        ]
        for one in measured["projects"]
    ]
    folder = measured["folder"]
    start = f"{folder['pictures']:,} pictures that were embedded before, in a new project: "
    start += f"the address after {folder['ready']:.1f} s, the first pictures on the page "
    start += f"after {folder['first']:.1f} s."
    start += disturbance(measured["busy"])
    return {"labeling-page": Table(start, header, rows)}


def measure_page(page: Page) -> dict[str, Any]:
    """Seconds and milliseconds of one project."""
    with TemporaryDirectory(prefix="protorect-") as scratch:
        root = Path(scratch)
        make_project(root, page.work, photographs(root / "photographs", 64))
        with Browser(root / "profile", 1440, 900) as browser:
            started = time.perf_counter()
            with command(root, root / "project") as address:
                browser.open(address)
                browser.wait_for(IN_VIEW)
                first = time.perf_counter() - started
                keys = time_keys(browser, page.keys)
                frames, end = scroll(browser, page.frames)
    return {
        "pictures": page.work.pictures,
        "classes": page.work.classes,
        "first": first,
        "frame": float(np.median(frames)),
        "frame_p95": float(np.percentile(frames, 95)),
        "end": end,
        "key": float(np.median(keys)),
        "key_p95": float(np.percentile(keys, 95)),
    }


def measure_folder(pictures: int) -> dict[str, Any]:
    """Seconds from the command to the address and to the first pictures of a new project."""
    with TemporaryDirectory(prefix="protorect-") as scratch:
        root = Path(scratch)
        photographs(root / "photographs", pictures)
        with Browser(root / "profile", 1440, 900) as browser:
            given = root / "photographs", "--out"
            with command(root, *given, root / "first") as address:
                wait_for_embedding(address)
            browser.open("about:blank")
            started = time.perf_counter()
            with command(root, *given, root / "second") as address:
                ready = time.perf_counter() - started
                browser.open(address)
                browser.wait_for(IN_VIEW)
                first = time.perf_counter() - started
    return {"pictures": pictures, "ready": ready, "first": first}


def wait_for_embedding(address: str) -> None:
    """Wait until a project has read its pictures."""
    base, _, token = address.partition("?token=")
    request = Request(f"{base}api/state", headers={"Authorization": f"Bearer {token}"})
    end = time.monotonic() + LONGEST
    while True:
        with urlopen(request) as answer:
            if json.load(answer)["progress"] is None:
                return
        if time.monotonic() > end:
            raise RuntimeError(f"the pictures were not read within {LONGEST} s.")
        time.sleep(1)


def time_keys(browser: Browser, keys: int) -> list[float]:
    """Milliseconds from a key that labels until the tile shows it."""
    browser.run(WATCH_KEYS)
    for number in range(keys):
        browser.press("2")
        browser.wait_for("keyTimes.length", number + 1)
        browser.wait_for(SAVED, "Saved")
    times: list[float] = browser.run("keyTimes")
    return times


def scroll(browser: Browser, frames: int) -> tuple[list[float], float]:
    """Milliseconds of the frames while all pictures scroll; seconds of a jump to the end."""
    browser.run("location.hash = '#all'")
    browser.wait_for("document.querySelector('h1').innerText", "All pictures")
    browser.wait_for(IN_VIEW)
    times: list[float] = browser.run(FRAMES.format(frames=frames, step=STEP))
    started = time.perf_counter()
    browser.press("End")
    browser.wait_for(
        "document.activeElement.getAttribute('aria-posinset') === "
        "document.activeElement.getAttribute('aria-setsize')"
    )
    browser.wait_for(IN_VIEW)
    return times, time.perf_counter() - started


def photographs(folder: Path, count: int) -> list[Path]:
    """Write pictures of smooth noise, as large as those of a small camera."""
    from PIL import Image

    folder.mkdir()
    rng = np.random.default_rng(0)
    paths = []
    for number in range(count):
        small = rng.integers(0, 256, (12, 16, 3), np.uint8)
        paths.append(folder / f"{number:04}.jpg")
        Image.fromarray(small).resize((640, 480), Image.Resampling.BICUBIC).save(paths[-1])
    return paths


@contextmanager
def command(root: Path, *arguments: str | Path) -> Iterator[str]:
    """`protorect label` with a cache of its own; its address."""
    environment = os.environ | {"XDG_CACHE_HOME": str(root / "cache")}
    run = [sys.executable, "-m", "protorect", "label", *map(str, arguments), "--no-browser"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
