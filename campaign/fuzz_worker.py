"""One case: a seed is copied, one of its files is mutated, the program reads it, and is judged.

Everything runs inside the process, which has imported the program before: no start-up is paid.
"""

import gc
import io
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from campaign.fuzz_processes import STATE, Case
from campaign.fuzz_targets import Target

SECONDS, MEGABYTES = 20.0, 600
EXIT_CODES = (0, 1, 2, 130)
_ADDRESS_SPACE = 12 * 2**30  # bytes beyond what is mapped already; the measured limit is lower
_EXECUTES = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "subprocess.Popen",
    "os.fork",
    "socket.connect",
)
_CHANGES = (
    "os.rename",
    "os.remove",
    "os.link",
    "os.symlink",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
)
_CHANGES += ("os.chmod", "os.chown", "os.utime", "shutil.rmtree", "shutil.move")
_RELATIVE = ("os.remove", "os.rmdir")  # of `shutil.rmtree`, which names files by their folder
_FOLDERS = ("TMPDIR", "XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "MPLCONFIGDIR")
_SHOWN = "\n\t"
# What a message names instead of a file, if the fault is in what all files together say.
_SUBJECTS = ("the label", "class ", "the examples", "no picture", "the same picture")
_SUBJECTS += ("use another network",)


@dataclass(frozen=True)
class Outcome:
    """What a case led to; `problem` is empty if the program withstood it."""

    code: int | None
    problem: str
    seconds: float
    megabytes: float


class _Watch:
    """Notes, by audit events of Python, what is executed or changed outside of a folder."""

    def __init__(self) -> None:
        self.root, self.seen = "", ""
        sys.addaudithook(self._event)

    def _event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.root or self.seen:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if (writes or (mode and set(mode) & set("wax+"))) and self._outside(path):
                self.seen = f"opens {path!r} for writing"
        elif event in _EXECUTES:
            self.seen = f"{event} {arguments!r:.200}"
        elif event in _CHANGES:
            # The target of a link may be anywhere; only the name that is made counts.
            names = [one for one in arguments if isinstance(one, str | bytes)]
            folders = [one for one in arguments if type(one) is int and one > 2]
            base = f"/proc/self/fd/{folders[-1]}" if event in _RELATIVE and folders else "."
            if any(self._outside(path, base) for path in names[event == "os.symlink" :]):
                self.seen = f"{event} {arguments!r:.200}"

    def _outside(self, path: Any, base: str = ".") -> bool:
        if isinstance(path, int) or path is None:
            return False
        place = os.path.join(base, os.path.dirname(os.fsdecode(path)))
        real = os.path.join(os.path.realpath(place), "")
        return not real.startswith((self.root, "/dev/", "/proc/self/"))


WATCH = _Watch()


def run_case(target: Target, folder: Path, seed: str, case: Case) -> Outcome:
    """Fill the folder of a seed again, mutate or replace one file, and let the program read it."""
    os.environ["XDG_STATE_HOME"] = str(folder.parent / STATE)
    root = folder / folder.name
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(folder / "pristine", root, symlinks=True)
    path = target.path(root)
    if isinstance(case, Path):
        path.write_bytes(case.read_bytes())
    else:
        rng = Random(f"{seed} {target.name} {case}")
        path.write_bytes(target.mutation(path.read_bytes(), rng))
    return _judged(target, root)


def _judged(target: Target, root: Path) -> Outcome:
    """Let the program read the files in `root`, and judge how it took that."""
    _reset_peak()
    before, start = _peak(), time.perf_counter()
    problem, code = "", None
    with _captured(root) as read:
        WATCH.root, WATCH.seen = f"{os.path.realpath(root)}/", ""
        try:
            code = target.run(root)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            problem = f"traceback: {_last_call(traceback.format_exc())}"
        WATCH.root = ""
        seconds, megabytes = time.perf_counter() - start, _peak() - before
        text = read()
    problem = problem or _judge(target, root, code, text)
    if not problem and seconds > SECONDS:
        problem = f"{seconds:.0f} seconds"
    if not problem and megabytes > MEGABYTES:
        problem = f"{megabytes:.0f} MB"
    gc.collect()
    return Outcome(code, problem, seconds, megabytes)


def _judge(target: Target, root: Path, code: int | None, text: str) -> str:
    """What is wrong with the exit code, the output or the side effects; "" if nothing."""
    if WATCH.seen:
        return f"outside: {WATCH.seen}"
    if code not in EXIT_CODES:
        return f"exit code {code}"
    if "Traceback (most recent call last)" in text:
        return f"traceback: {_last_call(text)}"
    control = [sign for sign in text if sign not in _SHOWN and _is_control(sign)]
    if control:
        return f"control character {control[0]!r} in the output: {_around(text, control[0])!r}"
    if code == 2:
        return _judge_message(target, root, text)
    return ""


def _judge_message(target: Target, root: Path, text: str) -> str:
    """A refusal is one sentence that names the file, and does not blame the memory."""
    message = [line for line in text.splitlines() if line.startswith("protorect: ")]
    if len(message) != 1:
        return f"no message: {text[-200:]!r}"
    if "not enough memory" in message[0]:
        return f"runs out of memory: {message[0]}"
    file = target.path(root) if list(root.glob(target.file)) else root / target.file
    names = (file.name, file.parent.name, root.name, *_SUBJECTS)
    return "" if any(name in message[0] for name in names) else f"unnamed: {message[0]:.300}"


def _is_control(sign: str) -> bool:
    return (
        unicodedata.category(sign) == "Cc" or sign in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067"
    )


def _around(text: str, sign: str) -> str:
    place = text.index(sign)
    return text[max(0, place - 60) : place + 20]


def _last_call(trace: str) -> str:
    """The error and the innermost line of the program itself."""
    lines = [line.strip() for line in trace.strip().splitlines()]
    own = [line for line in lines if line.startswith("File") and "protorect" in line]
    places = [line.split('"')[1].split("protorect/")[-1] + line.split('"')[2] for line in own[-1:]]
    return " ".join([lines[-1][:300], *places])


@contextmanager
def _captured(root: Path) -> Iterator[Any]:
    """Standard output and error in a file; temporary files and caches below the root."""
    path = root.parent / f"{root.name}.output"
    scratch = root / "tmp"
    scratch.mkdir(exist_ok=True)
    tempfile.tempdir = str(scratch)
    os.environ |= dict.fromkeys(_FOLDERS, str(scratch))
    old = sys.stdout, sys.stderr
    with path.open("wb") as file:
        stream = io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="\n")
        sys.stdout = sys.stderr = stream
        try:
            yield lambda: (stream.flush(), path.read_bytes().decode(errors="replace"))[1]
        finally:
            sys.stdout, sys.stderr = old
            stream.flush()


def limit_memory() -> None:
    """Let an allocation without bounds fail instead of the machine."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
    resource.setrlimit(resource.RLIMIT_AS, (mapped + _ADDRESS_SPACE,) * 2)


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> float:
    """Megabytes of memory at most since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
