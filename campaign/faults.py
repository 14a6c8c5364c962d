"""Every file operation of every command fails or kills the process; nothing may be lost.

After each fault the same command, or undo, has to finish: the files are then as after a run without
fault, or as before the command; no temporary files are left, and there is no traceback.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from campaign.file_faults import COUNTED, FAULTS, Outcome, intercepting, run_with_fault
from protorect.report.table import Table

OTHER_FILE_SYSTEM = Path("/dev/shm")
_TEMPORARY = re.compile(r"/\.(?!protorect(/|$))|\.part")
_LEFT_OUT = "could not be read:"  # a picture, which the message names
_UNNAMED = re.compile(r"^protorect: [^/]*$", re.MULTILINE)  # an error that names no file


def run(seconds: float, sample: int = 0, names: Sequence[str] = ()) -> dict[str, Any]:
    """Attack for at most so many seconds.

    `sample` takes only so many faults of each kind and command; with `names`, only these commands.
    """
    arguments = ["-m", "campaign.faults", str(seconds), str(sample), *names]
    started = intercepting(arguments, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(started.stdout))


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """The table of docs/reliability.md."""
    header = ["command", *FAULTS, "tried", "not finished"]
    rows = [
        [f"`{name}`", *(f"{n:,}" for n in (*one["faults"].values(), one["tried"], one["failures"]))]
        for name, one in measured["commands"].items()
    ]
    return {"faults": Table("", header, rows)}


class Point(NamedTuple):
    """One attack: a fault at one operation of a command, and a way to go on."""

    command: int
    other: bool  # whether the output is on another file system
    fault: str
    number: int
    recovery: str


@dataclass
class Arena:
    """The folders of one command on one pair of file systems, and how they look."""

    command: Any
    place: Any
    copies: Path
    states: dict[str, Any]

    @property
    def watched(self) -> tuple[Path, Path]:
        """What the command reads and writes."""
        return self.place.here, self.place.out.parent

    def restore(self) -> None:
        """Bring back the state before the command."""
        for number, folder in enumerate(self.watched):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(self.copies / str(number), folder, symlinks=True)
        for path in (self.place.notes, self.place.notes.with_suffix(".state")):
            path.unlink(missing_ok=True)

    def tree(self) -> dict[str, tuple[str, object]]:
        """Everything in the folders, except for the cache, which may be made again."""
        tree = {}
        for number, folder in enumerate(self.watched):
            for path in sorted(folder.rglob("*")):
                name = f"{number}/{path.relative_to(folder)}"
                if name.startswith("0/cache"):
                    continue
                if path.is_symlink():
                    tree[name] = ("link", (os.readlink(path), os.path.realpath(path)))
                elif path.is_dir():
                    tree[name] = ("folder", None)
                else:
                    loose = any(part in name for part in self.command.loose)
                    tree[name] = ("file", None if loose else path.read_bytes())
        state = self.place.notes.with_suffix(".state")
        if state.exists():
            tree["what people said"] = ("file", state.read_bytes())
        return {_without_random_names(name): one for name, one in tree.items()}


def arena(command: Any, other: bool, folder: Path, there: Path, weights: Path) -> Arena:
    """Make the folders of a command; `there` is a folder on the other file system."""
    from campaign.faults_commands import Place

    here, out = folder / "here", (there if other else folder) / "there" / "out"
    place = Place(here, out, folder / "notes", weights)
    for one in (here, out.parent):
        one.mkdir(parents=True)
    command.arrange(place)
    made = Arena(command, place, folder / "copies", {})
    for number, one in enumerate(made.watched):
        shutil.copytree(one, made.copies / str(number), symlinks=True)
    made.states["before"] = made.tree()
    command.act(place)
    made.states["done"] = made.tree()
    return made


def attack(made: Arena, point: Point) -> str:
    """Try one point; what is wrong afterwards, or nothing."""
    made.restore()
    fault, command = FAULTS[point.fault], made.command
    failed = _child(made, command.act, point)
    if problem := failed.problem or _unnamed(failed):
        return f"{fault.name}: {problem}"
    if name := lost(made):
        return f"lost after the {fault.name}: {name}"
    for step in command.recoveries[point.recovery]:
        outcome = _child(made, step.run)
        if outcome.problem:
            return f"{point.recovery}: {outcome.problem}"
        if failed.code == 0 and command.may_leave_out and _LEFT_OUT in failed.output:
            continue
        if differs := difference(made.tree(), made.states.get(step.state)):
            said = " ".join(outcome.output.split())[-300:]
            return f"{point.recovery}, not as {step.state}: {differs} ({said})"
    return ""


def _child(made: Arena, run_one: Any, point: Point | None = None) -> Outcome:
    fault, number = (FAULTS[point.fault], point.number) if point else (COUNTED, 0)
    return run_with_fault(lambda: run_one(made.place), fault, number, made.watched)


def _unnamed(outcome: Outcome) -> str:
    found = _UNNAMED.search(outcome.output)
    return f"it does not say which file: {found[0]}" if found else ""


def lost(made: Arena) -> str:
    """The first file whose content is nowhere any more, although the command keeps it."""
    kept = _contents(made.states["done"].values())
    there = _contents(made.tree().values())
    for name, one in made.states["before"].items():
        if _contents([one]) & kept - there:
            return name
    return ""


def _contents(files: Collection[tuple[str, Any]]) -> set[tuple[str, Any]]:
    """What is in files, and to which file links lead."""
    links = {(kind, content[1]) for kind, content in files if kind == "link"}
    return links | {(kind, content) for kind, content in files if kind == "file" and content}


def difference(tree: Any, expected: Any) -> str:
    """The first difference of two trees; an empty folder of the output may stay.

    Without an expected tree, the first temporary file.
    """
    if expected is None:
        return next((f"{name} is left" for name in tree if _TEMPORARY.search(name)), "")
    for name in sorted({*tree, *expected}):
        if name not in tree:
            return f"{name} is missing"
        if name not in expected:
            empty = tree[name][0] == "folder" and not any(
                one.startswith(f"{name}/") for one in tree
            )
            if not (name == "1/out" and empty):
                return f"{name} is left"
        elif tree[name] != expected[name]:
            return f"{name} differs"
    return ""


def _without_random_names(name: str) -> str:
    return re.sub(r"/00\d\d-[0-9a-f]{32}", "/plan", name)


def _points(made: Arena, index: int, other: bool, sample: int) -> Iterator[Point]:
    """All faults of a command: their operations are counted in a run without fault."""
    for name, fault in FAULTS.items():
        made.restore()
        counted = run_with_fault(
            lambda: made.command.act(made.place),
            type(fault)("count", 0, fault.kinds),
            0,
            made.watched,
        )
        numbers: Sequence[int] = range(1, counted.operations + 1)
        if sample:
            numbers = sorted(random.Random(name).sample(numbers, min(sample, len(numbers))))
        for number in numbers:
            # After an error, somebody gives the same command again; after a kill, perhaps another.
            recoveries = list(made.command.recoveries)
            for recovery in recoveries if name == "kill" else recoveries[:1]:
                yield Point(index, other, name, number, recovery)


def _main(seconds: float, sample: int, names: Sequence[str]) -> dict[str, Any]:
    from campaign.faults_commands import COMMANDS, write_network

    commands = [one for one in COMMANDS if one.name in (names or one.name)]

    deadline = time.monotonic() + seconds
    workers = os.cpu_count() or 1
    with (
        tempfile.TemporaryDirectory(prefix="protorect-faults-") as here,
        tempfile.TemporaryDirectory(prefix="protorect-faults-", dir=_other()) as there,
    ):
        weights = Path(here) / "conv64.safetensors"
        write_network(weights)
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = here
        arenas, points = {}, []
        for index, command in enumerate(commands):
            for other in command.other if _is_other() else (False,):
                folder = f"{index}-{int(other)}"
                made = arena(command, other, Path(here) / folder, Path(there) / folder, weights)
                arenas[index, other] = made
                points += _points(made, index, other, sample)
        random.Random(0).shuffle(points)  # if there is not enough time, some of every command
        shares = _shares(points, workers)
        failures = [
            one for pipe in [_worker(arenas, share, deadline) for share in shares] for one in pipe
        ]
        return _summary([command.name for command in commands], points, failures)


def _shares(points: Sequence[Point], workers: int) -> list[list[Point]]:
    """The points of each worker; the folders of a command are used by one of them only."""
    counts = Counter((point.command, point.other) for point in points)
    shares: list[list[tuple[int, bool]]] = [[] for _ in range(workers)]
    for key, _ in counts.most_common():
        min(shares, key=lambda keys: sum(counts[one] for one in keys)).append(key)
    return [[one for one in points if (one.command, one.other) in keys] for keys in shares]


def _worker(arenas: Any, points: Sequence[Point], deadline: float) -> Iterator[tuple[Point, str]]:
    """Start a process that tries the points; yields each with what is wrong, until the deadline."""
    source, sink = os.pipe()
    if os.fork() == 0:
        with open(sink, "w", encoding="utf-8") as file:
            for point in points:
                if time.monotonic() > deadline:
                    break
                problem = attack(arenas[point.command, point.other], point)
                print(json.dumps([point, problem]), file=file, flush=True)
        os._exit(0)
    os.close(sink)
    return _results(source)


def _results(source: int) -> Iterator[tuple[Point, str]]:
    with open(source, encoding="utf-8") as file:
        for line in file:
            point, problem = json.loads(line)
            yield Point(*point), problem
    os.wait()


def _summary(
    names: Sequence[str], points: Sequence[Point], tried: Sequence[tuple[Point, str]]
) -> dict[str, Any]:
    commands: dict[str, Any] = {}
    for index, name in enumerate(names):
        mine = [(point, problem) for point, problem in tried if point.command == index]
        commands[name] = {
            "faults": {fault: sum(one.fault == fault for one, _ in mine) for fault in FAULTS},
            "points": sum(point.command == index for point in points),
            "tried": len(mine),
            "failures": sum(bool(problem) for _, problem in mine),
        }
    return {
        "points": len(points),
        "tried": len(tried),
        "other_file_system": any(point.other for point in points),
        "commands": commands,
        "failures": [
            f"{names[point.command]}{', other file system' if point.other else ''}, "
            f"{point.fault} at {point.number}: {problem}"
            for point, problem in tried
            if problem
        ],
    }


def _other() -> str | None:
    """A folder on another file system than that of temporary files, if there is one."""
    if not OTHER_FILE_SYSTEM.is_dir():
        return None
    return str(OTHER_FILE_SYSTEM)


def _is_other() -> bool:
    temporary = os.stat(tempfile.gettempdir()).st_dev
    return _other() is not None and os.stat(OTHER_FILE_SYSTEM).st_dev != temporary


if __name__ == "__main__":
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        found = _main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    print(json.dumps(found))
