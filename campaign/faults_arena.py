"""The folders in which a command meets faults, and how they look before and after it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CONVENIENCES = ("0/cache", "1/out/changes.jsonl")
_TEMPORARY = re.compile(r"/\.(?!protorect(/|$))|\.part")


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
        """Everything in the folders, except for conveniences, which may be lost."""
        tree = {}
        for number, folder in enumerate(self.watched):
            for path in sorted(folder.rglob("*")):
                name = f"{number}/{path.relative_to(folder)}"
                if name.startswith(_CONVENIENCES):
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

    def done_without(self, late: Sequence[Path], act: Callable[[], object]) -> dict[str, Any]:
        """How it looks if `late` are missing when the command is given, and it is given again."""
        key = " ".join(map(str, late))
        if key not in self.states:
            hidden = [self.copies / f"hidden {number}" for number in range(len(late))]
            with self._set_aside():
                self.restore()
                for path, place in zip(late, hidden, strict=True):
                    os.rename(path, place)
                act()
                for path, place in zip(late, hidden, strict=True):
                    os.rename(place, path)
                act()
                self.states[key] = self.tree()
        return dict(self.states[key])

    @contextmanager
    def _set_aside(self) -> Iterator[None]:
        """Keep the folders as they are while others take their place."""
        pairs = [(folder, folder.with_name(f"{folder.name} aside")) for folder in self.watched]
        for folder, aside in pairs:
            os.rename(folder, aside)
        yield
        for folder, aside in pairs:
            shutil.rmtree(folder)
            os.rename(aside, folder)


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
