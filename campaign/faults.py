"""Every file operation of every command fails or kills the process; nothing may be lost.

After each fault the same command, or undo, has to finish: the files are then as after a run without
fault, or as before the command; no temporary files are left, and there is no traceback.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from campaign.faults_arena import Arena, arena, difference, lost
from campaign.file_faults import COUNTED, FAULTS, Outcome, intercepting, run_with_fault
from protorect.report.table import Table

OTHER_FILE_SYSTEM = Path("/dev/shm")
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
        differs = difference(made.tree(), made.states.get(step.state))
        if differs and step.state == "done" and (late := _unread(made, failed)):
            expected = made.done_without(late, lambda: _child(made, command.act))
            differs = difference(made.tree(), expected)
        if differs:
            said = " ".join(outcome.output.split())[-300:]
            return f"{point.recovery}, not as {step.state}: {differs} ({said})"
    return ""


def _child(made: Arena, run_one: Any, point: Point | None = None) -> Outcome:
    fault, number = (FAULTS[point.fault], point.number) if point else (COUNTED, 0)
    return run_with_fault(lambda: run_one(made.place), fault, number, made.watched)


def _unread(made: Arena, outcome: Outcome) -> list[Path]:
    """What was left out as it could not be read, if the next command sorts it."""
    if not made.command.late:
        return []
    inside = [made.place.here / name[2:] for name in made.states["before"] if name[0] == "0"]
    reason = f": .*{os.strerror(errno.EIO)}"
    return [path for path in inside if re.search(re.escape(str(path)) + reason, outcome.output)]


def _unnamed(outcome: Outcome) -> str:
    found = _UNNAMED.search(outcome.output)
    return f"it does not say which file: {found[0]}" if found else ""


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
