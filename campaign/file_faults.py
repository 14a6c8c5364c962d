"""Run a function in a child process in which one file operation fails, or kills the process.

The operations are those of the C library, so that they are seen whoever calls them: Python, SQLite,
safetensors. They are intercepted by a small library (file_faults.c, which needs a C compiler) that
this process has loaded before everything else; `intercepting` starts such a process.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
READ, ALLOCATE, CHANGE = 1, 2, 4  # kinds of operations, as in the library
SECONDS = 60  # after which a command counts as hanging
TRACEBACK = 70  # the exit code of an exception that no command has caught
_LOADED = "PROTORECT_FILE_FAULTS"


@dataclass(frozen=True)
class Fault:
    """What happens at the chosen operation, and which kinds of operations are counted."""

    name: str
    action: int
    kinds: int


COUNTED = Fault("nothing", 0, READ | ALLOCATE | CHANGE)
FAULTS = {
    "error": Fault("error", 1, READ | ALLOCATE | CHANGE),  # EIO, once
    "full": Fault("full", 2, ALLOCATE),  # ENOSPC, from this operation on
    "kill": Fault("kill", 3, ALLOCATE | CHANGE),  # SIGKILL; a write has written half of its data
}


@dataclass(frozen=True)
class Outcome:
    """How a child process ended."""

    code: int  # negative: minus the number of the signal
    output: str  # standard output and standard error
    operations: int

    @property
    def problem(self) -> str:
        """Why no command may end like this; empty if it may."""
        if self.code == -signal.SIGALRM:
            return f"it took more than {SECONDS} s"
        if self.code == TRACEBACK or "Traceback (most recent call last)" in self.output:
            return f"traceback: {self.output.strip().splitlines()[-1]}"
        if self.code not in (0, 1, 2, -signal.SIGKILL):
            return f"exit code {self.code}"
        return ""


def compiler() -> str | None:
    """The C compiler, if there is one."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def intercepting(arguments: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` with the library loaded."""
    found = compiler()
    if found is None:
        raise SystemExit("the faults need a C compiler, such as gcc; there is none.")
    with tempfile.TemporaryDirectory(prefix="protorect-faults-") as folder:
        library = Path(folder) / "file_faults.so"
        command = [found, "-shared", "-fPIC", "-O1", "-w", "-o", library, SOURCE, "-ldl"]
        subprocess.run(command, check=True)
        loaded = {"LD_PRELOAD": str(library), _LOADED: str(library), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, *arguments], env=os.environ | loaded, text=True, **options
        )


class Child:
    """A function that runs in a child process; what it returns is the exit code."""

    def __init__(self, action: Callable[[], int], prepare: Callable[[], object] = int) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `wait`
        self.process = os.fork()
        if self.process == 0:
            _run(action, prepare, self._output.fileno())

    def wait(self) -> tuple[int, str]:
        """The exit code, negative for a signal, and all output."""
        _, status = os.waitpid(self.process, 0)
        with self._output as output:
            output.seek(0)
            return os.waitstatus_to_exitcode(status), output.read().decode("utf-8", "replace")


def run_with_fault(
    action: Callable[[], int], fault: Fault, number: int, folders: Sequence[Path]
) -> Outcome:
    """Run a function in a child process with a fault at its operation of this number.

    Operations below the folders are counted.
    """
    counter = mmap.mmap(-1, mmap.PAGESIZE)  # shared with the child

    def arm() -> None:
        library = ctypes.CDLL(os.environ[_LOADED])
        paths = (ctypes.c_char_p * 5)(*(os.fsencode(folder) for folder in folders))
        place = ctypes.byref(ctypes.c_long.from_buffer(counter))
        library.arm(paths, fault.kinds, fault.action, ctypes.c_long(number), place)

    code, output = Child(action, arm).wait()
    return Outcome(code, output, ctypes.c_long.from_buffer_copy(counter).value)


def _run(action: Callable[[], int], prepare: Callable[[], object], output: int) -> None:
    """The child process: it never returns."""
    code = TRACEBACK
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - kept open
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        prepare()
        code = action()
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
