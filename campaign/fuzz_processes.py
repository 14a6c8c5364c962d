"""Processes that run cases; one that a case kills or stops is replaced."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Case = int | Path  # the number of a mutation, or a file that was found before
STATE = "state"  # the folder with the key that seals journals
_GRACE = 5.0  # seconds beyond the limit before a process is killed
_FORK = multiprocessing.get_context("fork")


def in_process(function: Any, *arguments: Any) -> None:
    """Call a function in a process of its own, so that this one stays free of threads."""
    process = _FORK.Process(target=function, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{function.__name__} ended with {process.exitcode}")


class Worker:
    """A forked process that runs cases of one target after another."""

    def __init__(self, folder: Path, seed: str) -> None:
        self.folder, self.seed = folder, seed
        self.target: Any = None
        self.waiting: list[Case] = []  # the first of them is running
        self._spawn()

    def _spawn(self) -> None:
        self.pipe, other = _FORK.Pipe()
        self.process = _FORK.Process(target=_work, args=(other, self.folder, self.seed))
        self.process.start()
        other.close()

    def start(self, target: Any, cases: list[Case]) -> None:
        """Let the process run these cases."""
        self.target, self.waiting, self._since = target, list(cases), time.monotonic()
        self.pipe.send((target.name, cases))

    def outcomes(self) -> Iterator[tuple[Case, Any]]:
        """The cases that were finished since the last call, and their outcomes."""
        from campaign.fuzz_worker import SECONDS, Outcome

        try:
            while self.waiting and self.pipe.poll():
                outcome = self.pipe.recv()
                self._since = time.monotonic()
                yield self.waiting.pop(0), outcome
        except (EOFError, ConnectionResetError):
            self.process.join()
            yield self._replaced(Outcome(None, f"dies by {self.process.exitcode}", 0, 0))
        if self.waiting and time.monotonic() - self._since > SECONDS + _GRACE:
            self.process.kill()
            self.process.join()
            yield self._replaced(Outcome(None, "does not end", SECONDS, 0))

    def _replaced(self, outcome: Any) -> tuple[Case, Any]:
        """Go on after the case that ended the process, in a new one."""
        self._spawn()
        case, *rest = self.waiting
        self.start(self.target, rest)
        return case, outcome

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()


def _work(pipe: Connection, folder: Path, seed: str) -> None:
    """Run the cases that come through the pipe, until it is closed."""
    from campaign.fuzz_targets import TARGETS
    from campaign.fuzz_worker import limit_memory, run_case

    targets = {one.name: one for one in TARGETS}
    os.environ |= {"PROTORECT_DECODING_MB": "128"}
    gc.freeze()  # what was imported need not be looked at after each case
    limit_memory()
    while True:
        name, cases = pipe.recv()
        for case in cases:
            pipe.send(run_case(targets[name], folder / targets[name].seed, seed, case))
