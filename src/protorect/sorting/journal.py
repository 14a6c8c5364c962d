"""The journal of a sorted folder: what is to be placed where, on disk before a file is touched.

`DIR/journal/0001.jsonl` is one batch: a line about the batch, then a line a picture. A journal
appears whole or not at all, and is never changed. What of it was done is seen in the file system
itself, so that going on and undoing need nothing that a crash could lose.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from protorect._utils.files import written_whole
from protorect.errors import DataError
from protorect.labeling.predictions import Prediction

FOLDER = "journal"
FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """One picture to be placed.

    Parameters
    ----------
    prediction
        Whose path is where the picture came from.
    to
        Where it goes, relative to the sorted folder.
    content
        SHA-256 of the file, in hexadecimal.
    link
        Where it leads if it is a link itself; empty for an ordinary file.
    """

    prediction: Prediction
    to: str
    content: str
    link: str = ""


@dataclass(frozen=True)
class Batch:
    """Pictures sorted together.

    Parameters
    ----------
    mode
        "link", "copy" or "move".
    examples
        (path, label) of each example.
    method
        The name of the method that was used.
    made_folder
        Whether the sorted folder was made for it.
    entries
        What is to be placed.
    """

    mode: str
    examples: tuple[tuple[str, str], ...]
    method: str
    made_folder: bool
    entries: tuple[Entry, ...]


def journals(folder: Path) -> list[Path]:
    """The journals of a sorted folder, oldest first."""
    return sorted((folder / FOLDER).glob("[0-9]*.jsonl"))


def load_batches(folder: Path) -> list[Batch]:
    """All batches of a sorted folder, oldest first."""
    return [_loaded(path) for path in journals(folder)]


def write_batch(folder: Path, batch: Batch) -> None:
    """Put a batch on disk; when this returns it is there even if the power fails."""
    number = len(journals(folder)) + 1
    path = folder / FOLDER / f"{number:04}.jsonl"
    head = {name: value for name, value in asdict(batch).items() if name != "entries"}
    lines = [json.dumps({"format": FORMAT, **head})]
    lines += [json.dumps(_line(entry)) for entry in batch.entries]
    with written_whole(path) as beside, beside.open("w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    sync_folders([path.parent, folder])


def sync_folders(folders: Iterable[Path]) -> None:
    """Bring the names in folders to disk, where the system can."""
    for folder in folders:
        try:
            handle = os.open(folder, os.O_RDONLY)
        except OSError:  # some systems do not open folders
            continue
        try:
            os.fsync(handle)
        except OSError:
            pass
        finally:
            os.close(handle)


def _line(entry: Entry) -> list[Any]:
    return [*entry.prediction, entry.to, entry.content, entry.link]


def _loaded(path: Path) -> Batch:
    damaged = f"{path} is damaged; nothing was touched. Mend it, or move the pictures by hand."
    try:
        lines = path.read_text(encoding="ascii").splitlines()
        head, *rows = (json.loads(line) for line in lines)
        if head["format"] > FORMAT:
            raise DataError(f"{path} was written by a newer protorect; install that.")
        entries = tuple(_entry(row) for row in rows)
        examples = tuple((str(file), str(label)) for file, label in head["examples"])
        if head["mode"] not in ("link", "copy", "move"):
            raise DataError(damaged)
        mode, method = head["mode"], str(head["method"])
        return Batch(mode, examples, method, bool(head["made_folder"]), entries)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    except DataError:
        raise
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataError(damaged) from error


def _entry(row: Sequence[Any]) -> Entry:
    *answer, to, content, link = row
    prediction = Prediction(*answer)
    # A journal must not be able to reach files outside of its folder.
    if os.path.isabs(to) or ".." in Path(to).parts or not os.path.isabs(prediction.path):
        raise ValueError(to)
    return Entry(prediction, str(to), str(content), str(link))
