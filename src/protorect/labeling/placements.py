"""The journal of a sorted folder: which picture goes where, on disk before a file is touched.

Each file `DIR/.protorect/journal/0001-<random>.jsonl` holds one plan: a line about the plan, one
line per picture, and a line with a checksum of each and a seal over all, which only this user's
key gives. A journal file is written completely or not at all, no two have the same name, and
none is ever changed. Which steps are done is seen in the file system itself, so that continuing
and undoing need nothing that a crash could lose.
"""

import hmac
import json
import os
import reprlib
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from protorect._utils.documents import COUNT, checked, parse_json, read_json_lines
from protorect._utils.files import atomic_write, names_in, open_file, sync_folders
from protorect._utils.keys import user_key
from protorect.errors import DataError, damaged
from protorect.labeling.prediction import Prediction

OWN = ".protorect"  # the subfolder of the sorted folder with everything but pictures and outputs
FOLDER = f"{OWN}/journal"
FORMAT = 2  # 1 had neither checksums nor a seal
MODES = ("link", "copy", "move")
_HEAD = {"mode": set(MODES), "examples": [(Path, Path)], "method": str, "made_folder": bool}
_HEAD |= {"network?": str, "corrections?": [Path], "left?": [Path]}  # not in the first journals
# A prediction, then target, content and link of its placement.
_ROW = (Path, Path, float, Path, float, float, Path, Path, str, Path)
_REMEDY = "Nothing was touched. Repair it, or move the pictures by hand."


@dataclass(frozen=True)
class Placement:
    """Where one picture goes."""

    prediction: Prediction  # its path is where the picture came from
    target: str  # path relative to the sorted folder
    content: str  # SHA-256 of the file in hexadecimal
    link: str = ""  # what the picture points to if it is a symbolic link itself


@dataclass(frozen=True)
class Plan:
    """Pictures that are placed together."""

    mode: str  # one of MODES
    examples: tuple[tuple[str, str], ...]  # path and label of each
    method: str
    made_folder: bool  # whether the sorted folder did not exist before its first plan
    placements: tuple[Placement, ...]
    name: str  # of the journal file, without its suffix; part of the names of temporary files
    network: str = ""  # name, precision and device; empty in older journals
    corrections: tuple[str, ...] = ()  # targets that a person chose
    left: tuple[str, ...] = ()  # targets of earlier plans that had to stay in the folder
    sealed: bool = True  # whether this user's protorect wrote it here


def journal_files(folder: Path) -> list[Path]:
    """The journal files of a sorted folder, oldest first."""
    return [folder / FOLDER / name for name in names_in(folder / FOLDER) if is_journal(name)]


def is_journal(name: str) -> bool:
    """Whether a file has the name of a journal."""
    return name[0].isdigit() and name.endswith(".jsonl")


def load_plans(folder: Path) -> list[Plan]:
    """All plans of a sorted folder, oldest first."""
    return [_load(path) for path in journal_files(folder)]


def new_name(folder: Path) -> str:
    """A name for the next plan that is not used by any other process."""
    return f"{len(journal_files(folder)) + 1:04}-{uuid.uuid4().hex}"


def write_plan(folder: Path, plan: Plan) -> None:
    """Write a plan to disk; when this returns it survives a power failure."""
    path = folder / FOLDER / f"{plan.name}.jsonl"
    head: dict[str, Any] = {"format": FORMAT, "mode": plan.mode, "examples": plan.examples}
    head |= {"method": plan.method, "made_folder": plan.made_folder, "network": plan.network}
    lines = [json.dumps(head | {"corrections": plan.corrections, "left": plan.left})]
    lines += [json.dumps([*p.prediction, p.target, p.content, p.link]) for p in plan.placements]
    checks, seal = _checks_and_seal([f"{line}\n".encode() for line in lines])
    lines.append(json.dumps({"checks": checks, "seal": seal}))
    with atomic_write(path) as temporary, temporary.open("w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folders([path.parent, path.parent.parent, folder])


def _load(path: Path) -> Plan:
    count, sealed = _checked_lines(path)
    lines = read_json_lines(path, chain([{"format": COUNT}], repeat(_ROW, count)), _REMEDY)
    head: dict[str, Any] = next(lines, {"format": 0})
    if head["format"] > FORMAT:
        raise DataError(f"{path} was written by a newer protorect; install that.")
    try:
        checked(head, _HEAD)
        placements = tuple(_placement(row) for row in lines)
    except DataError:
        raise
    except ValueError as error:
        raise damaged(path, str(error), _REMEDY) from error
    return Plan(
        head["mode"],
        tuple((file, label) for file, label in head["examples"]),
        head["method"],
        head["made_folder"],
        placements,
        path.stem,
        head.get("network", ""),
        tuple(head.get("corrections", ())),
        tuple(head.get("left", ())),
        sealed,
    )


def _checked_lines(path: Path) -> tuple[int, bool]:
    """How many pictures a journal has at most, and whether this user's protorect wrote it here.

    DataError with the line that was edited. A journal of format 1 has no checksums.
    """
    with open_file(path) as file:
        *lines, last = file.readlines() or [b""]
    first = _parsed(lines[0] if lines else last, {"format": COUNT})
    if first is None or first["format"] != FORMAT:
        return len(lines) + 1, False
    end = _parsed(last, {"checks": str, "seal": str})
    if end is None:
        raise damaged(path, "its last line, which has the checksums, is missing", _REMEDY)
    checks, seal = _checks_and_seal(lines)
    pairs = zip(_parts(end["checks"]), _parts(checks), strict=False)
    for number, (stored, actual) in enumerate(pairs, 1):
        if stored != actual:
            where = f"{path}, line {number},"
            raise damaged(where, "it was edited", _REMEDY)
    if len(checks) != len(end["checks"]):
        raise damaged(path, "lines were added or removed", _REMEDY)
    return len(lines) - 1, bool(seal) and hmac.compare_digest(
        seal.encode(), end["seal"].encode("utf-8", "replace")
    )


def _checks_and_seal(lines: Sequence[bytes]) -> tuple[str, str]:
    """Eight hexadecimal digits per line, and what only this user's key gives; empty without one."""
    key = user_key()
    seal = hmac.new(key, b"".join(lines), "sha256").hexdigest() if key else ""
    return "".join(f"{zlib.crc32(line):08x}" for line in lines), seal


def _parts(checks: str) -> Iterator[str]:
    return (checks[start : start + 8] for start in range(0, len(checks), 8))


def _parsed(line: bytes, expected: Any) -> dict[str, Any] | None:
    """A line as described, or None."""
    try:
        return dict(parse_json(line, expected))
    except ValueError:
        return None


def _placement(row: Sequence[Any]) -> Placement:
    *columns, target, content, link = row
    prediction = Prediction(*columns)
    # A journal must not be able to reach files outside of its folder.
    inside = os.path.basename(target) and ".." not in Path(target).parts
    if os.path.isabs(target) or not inside or not os.path.isabs(prediction.path):
        raise ValueError(f"{reprlib.repr(target)} is no file in the folder")
    return Placement(prediction, target, content, link)
