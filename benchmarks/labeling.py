"""Speed of a labeling session: act to answer, calibrated probabilities, opening, memory.

The pictures are empty files whose features are already in the project: embedding is measured
elsewhere. A simulated person labels what the session suggests.
"""

from __future__ import annotations

import http.client
import json
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.machine import in_new_process
from protorect.report.table import Table


@dataclass(frozen=True)
class Work:
    """One project."""

    pictures: int
    classes: int
    acts: int  # that are timed
    before: int = 0  # acts in the journal when the project is opened
    dim: int = 1280
    shots: int = 3


FULL = (Work(10_000, 20, 60), Work(100_000, 100, 12, before=10_000))
SMALL = (Work(120, 4, 3, before=5, dim=16),)


def measure(small: bool = False) -> dict[str, Any]:
    """All projects, each in a process of its own; the small version only shows that it runs."""
    return {
        "projects": [in_new_process(measure_project, one) for one in (SMALL if small else FULL)]
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """One row per project."""
    header = ["pictures", "classes", "act, median", "act, 95 %", "HTTP, median", "HTTP, 95 %"]
    header += ["probabilities", "OOD scores", "opening", "memory"]
    rows = [
        [
            f"{one['pictures']:,}",
            str(one["classes"]),
            f"{1000 * one['median']:.0f} ms",
            f"{1000 * one['p95']:.0f} ms",
            f"{1000 * one['http_median']:.0f} ms",
            f"{1000 * one['http_p95']:.0f} ms",
            f"{one['calibrated']:.2f} s",
            f"{one.get('ood', one['calibrated']):.2f} s",  # one figure in earlier results
            f"{one['opening']:.2f} s",
            f"{one['bytes'] / 1e9:.2f} GB",
        ]
        for one in measured["projects"]
    ]
    acts = max(one["before"] for one in measured["projects"])
    note = (
        "Probabilities, and after them out-of-distribution scores, follow the answer; the largest "
        f"project is opened with {acts:,} acts."
    )
    return {"labeling": Table(note, header, rows)}


def measure_project(work: Work) -> dict[str, Any]:
    """Seconds of acts, of the probabilities after them and of opening; bytes of memory."""
    from protorect.app.server import Address, serving
    from protorect.labeling.session import LabelingSession

    with TemporaryDirectory(prefix="protorect-") as scratch:
        root = Path(scratch)
        truth = make_project(root, work)
        start = time.perf_counter()
        session = LabelingSession.open(root / "project", cache=False)
        opening = time.perf_counter() - start
        session.wait()
        direct, followed = _time_acts(session, truth, work.acts, session.label)
        with serving(session, Address()) as address:
            by_http, _ = _time_acts(session, truth, work.acts, partial(_post_label, address))
        session.close()
    return {
        "pictures": work.pictures,
        "classes": work.classes,
        "before": work.before,
        "median": float(np.median(direct)),
        "p95": float(np.percentile(direct, 95)),
        "http_median": float(np.median(by_http)),
        "http_p95": float(np.percentile(by_http, 95)),
        "calibrated": float(np.median([first for first, _ in followed])),
        "ood": float(np.median([last for _, last in followed])),
        "opening": opening,
        "bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _time_acts(
    session: Any, truth: Any, acts: int, label: Callable[[list[int], str], object]
) -> tuple[list[float], list[tuple[float, float]]]:
    """Seconds until each act is answered, and from then on until what follows is there.

    That are the calibrated probabilities, and after them the out-of-distribution scores.
    """
    spent, followed, events = [], [], []

    def note(event: Any) -> None:
        if event.kind == "probabilities":
            events.append(time.perf_counter())

    stop = session.subscribe(note)
    for _ in range(acts):
        picture = session.suggest(1).pictures[0].id
        start = time.perf_counter()
        label([picture], f"class {truth[picture]}")
        answered = time.perf_counter()
        events.clear()
        session.wait()
        end = time.perf_counter()
        spent.append(answered - start)
        followed.append((min(events, default=end) - answered, end - answered))
    stop()
    return spent, followed


def _post_label(address: Any, ids: list[int], label: str) -> None:
    """Label through HTTP, and read the whole answer."""
    connection = http.client.HTTPConnection(address.host, address.port)
    headers = {"Authorization": f"Bearer {address.token}"}
    connection.request("POST", "/api/label", json.dumps({"ids": ids, "label": label}), headers)
    answer = connection.getresponse()
    json.loads(answer.read())
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"the server answered {answer.status}.")


def make_project(root: Path, work: Work, contents: Sequence[Path] = ()) -> Any:
    """Write a project with features and acts; the true class of each picture.

    The pictures are links to the files with the contents, in turn; without, they are empty.
    """
    from protorect._utils.files import sha256_of_file
    from protorect.images.find import find_pictures
    from protorect.labeling.act_journal import ActJournal
    from protorect.labeling.picture_rows import PictureRows
    from protorect.labeling.picture_store import PictureStore, Stored
    from protorect.labeling.project import FEATURES, JOURNAL, ROWS, Project, Settings, listed

    (root / "pictures").mkdir()
    digests = [bytes.fromhex(sha256_of_file(path)) for path in contents] or [bytes(31) + b"1"]
    for number in range(work.pictures):
        path = root / "pictures" / f"{number:06}.jpg"
        if contents:
            path.hardlink_to(contents[number % len(contents)])
        else:
            path.touch()
    pictures = listed(find_pictures(root / "pictures"))
    settings = Settings("bench", (str(root / "pictures"),), "efficientnet-lite0", None, 0.08, 0.5)
    project = Project.create(root / "project", settings, pictures)
    rng = np.random.default_rng(0)
    truth = rng.integers(0, work.classes, work.pictures)
    centers = rng.random((work.classes, work.dim), np.float32) ** 4
    store = PictureStore(project.home / FEATURES)
    for start in range(0, work.pictures, 5000):
        part = truth[start : start + 5000]
        noise = rng.random((len(part), work.dim), np.float32) ** 4
        stored = [
            Stored(
                i,
                digests[i % len(digests)],
                *(640, 480),
                pictures[i].size,
                pictures[i].changed,
                "",
            )
            for i in range(start, start + len(part))
        ]
        store.append(stored, 0.5 * centers[part] + noise)
    PictureRows.of(store, len(store)).save(project.home / ROWS, store)
    journal, _, _ = ActJournal.load(project.home / JOURNAL)
    journal.open_for_writing()
    labels = [
        [f"class {way}", np.flatnonzero(truth == way)[: work.shots].tolist()]
        for way in range(work.classes)
    ]
    journal.append({"kind": "label", "labels": labels}, durable=False)
    for number in range(work.before):
        ids = sorted({int(one) for one in rng.integers(0, work.pictures, 4)})
        kind = ("accept", "label", "undo", "label")[number % 4]
        act: dict[str, Any] = {"kind": kind}
        if kind != "undo":
            act["labels"] = [
                [f"class {way}", [i for i in ids if truth[i] == way]]
                for way in sorted({int(truth[i]) for i in ids})
            ]
        journal.append(act, durable=False)
    journal.close()
    return truth
