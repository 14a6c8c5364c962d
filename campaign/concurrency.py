"""Two commands at the same time on one output: nothing is lost, and the second is told by whom.

The second command of a pair starts at another moment of the first one in each round.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaign.faults import Arena, arena, difference, lost
from campaign.file_faults import Child, Outcome
from protorect.report.table import Table

if TYPE_CHECKING:
    from campaign.faults_commands import Command, Place

ROUNDS = 12
# What may be said to the second command: who runs the first one or, once that ended, what is there.
_BY_WHOM = (
    *("process ", "exists already", "nothing to undo", "is not empty", "no picture to sort"),
    "holds pictures that were moved into it",
)


@dataclass(frozen=True)
class Pair:
    """Two commands on one output, and what is done afterwards to compare the files."""

    name: str
    start: Command  # says what is there before
    second: Callable[[Place], int]
    state: str  # what is there after the last step: "before", "done", or "" for any
    last: Callable[[Place], int] | None = None


def run(seconds: float, rounds: int = ROUNDS, names: Sequence[str] = ()) -> dict[str, Any]:
    """Run every pair in so many rounds, as far as the time allows."""
    arguments = ["-m", "campaign.concurrency", str(seconds), str(rounds), *names]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)
    return dict(json.loads(done.stdout))


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """The table of docs/reliability.md."""
    rows = [
        [name, *(str(one[key]) for key in ("rounds", "refused", "failures"))]
        for name, one in measured["pairs"].items()
    ]
    return {"concurrency": Table("", ["pair", "rounds", "one refused", "lost"], rows)}


def pairs() -> list[Pair]:
    """All pairs."""
    from campaign import faults_commands as commands

    named = {command.name: command for command in commands.COMMANDS}
    move, undo = named["sort --move"], named["undo of --move"]
    sort_again = partial(commands.sort, "move")
    found = [
        Pair("two `sort --move`", move, sort_again, "before", commands.undo),
        Pair("`sort --move` and `undo`", move, commands.undo, "before", commands.undo),
        Pair("`sort --move` and `sort --copy`", move, partial(commands.sort, "copy"), ""),
        Pair("two `undo`", undo, commands.undo, "done"),
        Pair("`undo` and `sort --move`", undo, sort_again, "done", commands.undo),
        Pair(
            "`sort --watch` and `sort`",
            named["sort --watch --move"],
            sort_again,
            "before",
            commands.undo_and_wait,
        ),
    ]
    for name in (
        "prepare",
        "extract to a file",
        "extract to a store",
        "export to folders",
        "train",
    ):
        found.append(Pair(f"two: {name}", named[name], named[name].act, "done"))
    label = named["label"]
    found += [
        Pair("two `label` on one project", label, label.act, "", commands.label_on),
        Pair(
            "`label` and `sort` on one sorted folder",
            commands.LABEL_SORTED,
            partial(commands.sort, "link"),
            "",
            commands.undo,
        ),
    ]
    return found


def attack(made: Arena, pair: Pair, delay: float) -> tuple[bool, str]:
    """Whether one command was refused, and what is wrong afterwards."""
    made.restore()
    first = Child(lambda: made.command.act(made.place))
    time.sleep(delay)
    second = Child(lambda: pair.second(made.place))
    refused = False
    for code, output in (first.wait(), second.wait()):
        outcome = Outcome(code, output, 0)
        if outcome.problem:
            return refused, outcome.problem
        if code == 2:
            refused = True
            if not any(part in output for part in _BY_WHOM):
                return refused, f"it does not say by whom: {' '.join(output.split())[-200:]}"
    if pair.state == "before" and (name := lost(made)):
        return refused, f"lost: {name}"
    if pair.last is not None:
        code, output = Child(lambda: pair.last(made.place)).wait()
        if problem := Outcome(code, output, 0).problem:
            return refused, problem
    return refused, difference(made.tree(), made.states.get(pair.state))


def duration(made: Arena) -> float:
    """Seconds of the first command on its own."""
    made.restore()
    start = time.monotonic()
    Child(lambda: made.command.act(made.place)).wait()
    return time.monotonic() - start


def _main(seconds: float, rounds: int, names: Sequence[str]) -> dict[str, Any]:
    from campaign.faults_commands import write_network

    deadline = time.monotonic() + seconds
    counts: dict[str, dict[str, int]] = {}
    failures = []
    delays = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="protorect-concurrency-") as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        weights = Path(folder) / "conv64.safetensors"
        write_network(weights)
        chosen = [pair for pair in pairs() if pair.name in (names or pair.name)]
        places = [Path(folder) / str(number) for number in range(len(chosen))]
        made = [
            arena(p.start, False, at, at, weights) for p, at in zip(chosen, places, strict=True)
        ]
        longest = [duration(one) for one in made]
        for _ in range(rounds):
            for pair, one, most in zip(chosen, made, longest, strict=True):
                if time.monotonic() > deadline:
                    break
                refused, problem = attack(one, pair, delays.uniform(0, most))
                count = counts.setdefault(pair.name, {"rounds": 0, "refused": 0, "failures": 0})
                count["rounds"] += 1
                count["refused"] += refused
                count["failures"] += bool(problem)
                if problem:
                    failures.append(f"{pair.name}: {problem}")
    return {"pairs": counts, "failures": failures}


if __name__ == "__main__":
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        found = _main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    print(json.dumps(found))
