"""The commands whose file operations are made to fail, and what has to be true afterwards."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import protorect
from protorect._utils.checkpoint import save_tensors
from protorect.backbones.registry import build
from protorect.cli import main
from protorect.sorting import sort as sorting

Tree = Mapping[str, tuple[str, object]]  # kind and content of everything by its name
COLORS = {"blue": (30, 60, 200), "red": (210, 50, 40)}
MODES = ("link", "copy", "move")


@dataclass(frozen=True)
class Place:
    """Where a command runs: `out` is what it writes, on the same or on another file system."""

    here: Path
    out: Path
    notes: Path  # outside of what is made to fail
    weights: Path

    @property
    def pictures(self) -> Path:
        """The pictures that are sorted and labeled."""
        return self.here / "pictures"

    @property
    def examples(self) -> Path:
        """Class folders."""
        return self.here / "examples"


@dataclass(frozen=True)
class Step:
    """Something a person does after a fault; `state` is what has to be there then."""

    run: Callable[[Place], int]
    state: str  # "done", "before", or "" if it may be any without temporary files


@dataclass(frozen=True)
class Command:
    """A command, what is there before, and the ways to go on after a fault."""

    name: str
    arrange: Callable[[Place], None]
    act: Callable[[Place], int]
    recoveries: Mapping[str, tuple[Step, ...]]
    loose: tuple[str, ...] = ()  # parts of names of files whose content differs in every run
    # Whether `out` is on another file system than the pictures; True alone also shows whether
    # temporary files are on that of the output.
    other: tuple[bool, ...] = (True,)
    may_leave_out: bool = False  # a picture that cannot be read, if it says so
    # Whether a picture that could not be read is sorted by the next command: the others are where
    # they are without it, and stay there.
    late: bool = False


def write_network(path: Path) -> None:
    """A network of 28 pixels with random weights, which are enough to distinguish colors."""
    torch.manual_seed(0)
    network = build("conv64", channels=3, size=28)
    card = {"kind": "backbone", "backbone": "conv64", "channels": 3, "size": 28}
    save_tensors(path, network.state_dict(), card | {"mean": [0.5] * 3, "std": [0.25] * 3})


def write_pictures(folder: Path, each: int, seed: int) -> None:
    """`each` noisy pictures of every color, in class folders."""
    random = np.random.default_rng(seed)
    for name, color in COLORS.items():
        (folder / name).mkdir(parents=True)
        for number in range(each):
            noisy = np.array(color) + random.normal(0, 25, (30, 32, 3))
            image = Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))
            image.save(folder / name / f"{number}.png")


def _unsorted(place: Place) -> None:
    """Pictures, one of them twice, one of them a link, one not readable; and examples."""
    write_pictures(place.examples, 1, 1)
    write_pictures(place.pictures, 2, 2)
    red = place.pictures / "red"
    (red / "same.png").write_bytes((red / "0.png").read_bytes())
    (red / "link.png").symlink_to("../../elsewhere.png")
    (place.pictures / "damaged.png").write_bytes((red / "1.png").read_bytes()[:60])
    os.rename(place.pictures / "blue" / "1.png", place.here / "elsewhere.png")


def sort(mode: str, place: Place, cached: bool = False) -> int:
    """`protorect sort`."""
    arguments = ["sort", place.pictures, "--examples", place.examples, "--out", place.out]
    options = [f"--{mode}", "--network", place.weights, "--precision", "float32"]
    cache = ["--cache", place.here / "cache"] if cached else ["--no-cache"]
    return main(list(map(str, [*arguments, *options, *cache])))


def undo(place: Place) -> int:
    """`protorect undo`."""
    return main(["undo", str(place.out)])


def _sorted(mode: str, place: Place) -> None:
    _unsorted(place)
    sort(mode, place)


def _arrive(place: Place) -> None:
    """A picture arrives, moved by another process."""
    waiting = place.here / "camera.png"
    if waiting.exists():
        subprocess.run(["mv", waiting, place.pictures / "camera.png"], check=True)


def _unwatched(place: Place) -> None:
    _unsorted(place)
    os.rename(place.pictures / "red" / "1.png", place.here / "camera.png")


def _watch(place: Place) -> int:
    """Two rounds of watching: what is there, and what arrives."""
    sorting.SECONDS_BETWEEN_SCANS = 0.01
    options = sorting.SortOptions(mode="move")
    arguments = (place.pictures, place.examples, place.out, options)
    try:
        results = sorting.watch(*arguments, source=place.weights, cache=False)
        next(results)
        _arrive(place)
        next(results)
        results.close()
    except protorect.ProtorectError as error:
        print(error)
        return 2
    return 0


def _sort_with_arrived(place: Place) -> int:
    _arrive(place)
    return sort("move", place)


def undo_and_wait(place: Place) -> int:
    """Undo, and bring the picture back to where it waited."""
    code = undo(place)
    arrived = place.pictures / "camera.png"
    if arrived.exists():
        subprocess.run(["mv", arrived, place.here / "camera.png"], check=True)
    return code


def _class_folders(place: Place) -> None:
    write_pictures(place.pictures, 4, 3)
    for name in ("blue", "red"):
        os.rename(place.pictures / name, place.pictures / f"{name} 1")
    write_pictures(place.pictures, 4, 4)


def _prepare(place: Place) -> int:
    options = ["--size", "28", "--split", "0.5,0.0,0.5", "--workers", "1"]
    return main(["prepare", "folder", str(place.pictures), "--out", str(place.out), *options])


def _prepared(place: Place) -> None:
    _class_folders(place)
    protorect.prepare(
        "folder", place.pictures, place.here / "packed", size=28, split=(0.5, 0, 0.5), workers=1
    )


def _extract(name: str, place: Place) -> int:
    out = place.out.with_name(name)
    arguments = ["extract", place.weights, place.pictures, "--out", out, "--precision", "float32"]
    return main([*map(str, arguments), "--cache", str(place.here / "cache")])


def _train(place: Place, resume: bool = False) -> int:
    arguments = [
        "train",
        str(place.here / "packed"),
        "--out",
        str(place.out),
        "--backbone",
        "conv64",
    ]
    settings = ["--set", "epochs=2", "--set", "batch_size=8"]
    return main([*arguments, *settings, *(["--resume"] if resume else [])])


def _train_on(place: Place) -> int:
    """The same command, or the one that its message asks for."""
    return _train(place) and _train(place, resume=True)


def _saved(place: Place) -> None:
    place.out.parent.mkdir(exist_ok=True)
    _classifier(0).save(place.out.with_suffix(".safetensors"))


def _classifier(seed: int) -> protorect.FewShotClassifier:
    features = np.random.default_rng(seed).normal(size=(8, 16)).astype(np.float32)
    return protorect.FewShotClassifier("cspn").fit(features, [0, 1] * 4)


def _save(place: Place) -> int:
    try:
        _classifier(1).save(place.out.with_suffix(".safetensors"))
    except protorect.ProtorectError as error:
        print(error)
        return 2
    return 0


def _to_export(place: Place) -> None:
    _unsorted(place)
    sorted_folder = Place(place.here, place.here / "sorted", place.notes, place.weights)
    sort("copy", sorted_folder)


def _export(form: str, place: Place) -> int:
    options = ["--format", form, "--out", str(place.out), "--copy", "--no-cache"]
    return main(["export", str(place.here / "sorted"), *options, "--network", str(place.weights)])


def _label(place: Place) -> int:
    """Every kind of act; what was answered is noted outside of what fails."""
    try:
        with protorect.LabelingSession.open(
            place.out,
            place.pictures,
            place.examples,
            source=place.weights,
            cache=False,
            precision="float32",
        ) as session:
            session.wait(30)
            files = [one.file for one in session._engine.project.pictures]
            chosen = [str(place.pictures / name) for name in _LABELED]
            if missing := {*chosen} - {*files}:  # their folder could not be listed
                print(f"there is no picture {min(missing)}")
                return 2
            for number, act in enumerate(_ACTS):
                act(session, *map(files.index, chosen), act_id=f"act {number}")
                with place.notes.open("a") as notes:
                    notes.write(f"act {number}\n")
            rows = session.pictures(order="name").pictures
            said = [(one.name, one.label, one.status) for one in rows]
            said = [one for one in said if one[-1] in ("example", "accepted")]
            classes = [one.name for one in session.state().classes]
            place.notes.with_suffix(".state").write_text(f"{said} {classes}\n")
    except protorect.ProtorectError as error:
        print(error)
        return 2
    return 0


_LABELED = ("blue/0.png", "damaged.png", "red/0.png", "red/1.png")
_ACTS: tuple[Callable[..., object], ...] = (
    lambda session, a, b, c, d, **options: session.label([a], "blue", **options),
    lambda session, a, b, c, d, **options: session.add_class("green", [b], **options),
    lambda session, a, b, c, d, **options: session.mark_unknown([c], **options),
    lambda session, a, b, c, d, **options: session.undo(**options),
    lambda session, a, b, c, d, **options: session.redo(**options),
    lambda session, a, b, c, d, **options: session.rename_class("green", "dark", **options),
    lambda session, a, b, c, d, **options: session.accept([d], **options),
    lambda session, a, b, c, d, **options: session.merge_classes("dark", "blue", **options),
)


def label_on(place: Place) -> int:
    """Every answered act is in the journal; the same acts again end in the same state."""
    answered = place.notes.read_text().splitlines() if place.notes.exists() else []
    journal = place.out / "journal.jsonl"
    text = journal.read_text("utf-8", "replace") if journal.exists() else ""
    missing = [act for act in answered if f'"act_id":"{act}"' not in text]
    if missing:
        print(f"answered, but not in the journal: {', '.join(missing)}")
        return 3
    return _label(place)


_AGAIN_THEN_UNDO = "the same command, then undo"
_JOURNALS = (".protorect/journal",)


def _sorting(mode: str, cached: bool = False) -> Command:
    again = partial(sort, mode, cached=cached)
    ways = {_AGAIN_THEN_UNDO: (Step(again, "done"), Step(undo, "before"))}
    if cached:
        return Command(f"sort --{mode} --cache", _unsorted, again, ways, _JOURNALS)
    ways["undo"] = (Step(undo, "before"),)
    return Command(
        f"sort --{mode}",
        _unsorted,
        again,
        ways,
        _JOURNALS,
        other=(False, True),
        late=mode == "move",
    )


def _undoing(mode: str) -> Command:
    ways = {"the same command": (Step(undo, "done"),)}
    arrange = partial(_sorted, mode)
    return Command(f"undo of --{mode}", arrange, undo, ways, other=(False, True))


def _repeated(
    name: str, arrange: Callable[[Place], None], act: Callable[[Place], int], **options: object
) -> Command:
    ways = {"the same command": (Step(act, "done"),)}
    return Command(name, arrange, act, ways, **options)  # type: ignore[arg-type]


# Acts in a folder that was sorted before.
LABEL_SORTED = Command(
    "label of a sorted folder", partial(_sorted, "link"), _label, {}, other=(False,)
)
COMMANDS = (
    *map(_sorting, MODES),
    _sorting("link", cached=True),
    *map(_undoing, MODES),
    Command(
        "sort --watch --move",
        _unwatched,
        _watch,
        {_AGAIN_THEN_UNDO: (Step(_sort_with_arrived, ""), Step(undo_and_wait, "before"))},
        _JOURNALS,
        other=(False, True),
    ),
    _repeated("prepare", _class_folders, _prepare, may_leave_out=True),
    _repeated(
        "extract to a file", _class_folders, partial(_extract, "features.npz"), may_leave_out=True
    ),
    _repeated(
        "extract to a store", _class_folders, partial(_extract, "features"), may_leave_out=True
    ),
    Command(
        "train",
        _prepared,
        _train,
        {"--resume": (Step(_train_on, "done"),)},
        ("log.jsonl", "run.json"),
    ),
    _repeated("save", _saved, _save),
    *(
        _repeated(f"export to {form}", _to_export, partial(_export, form))
        for form in ("csv", "folders", "classifier")
    ),
    Command(
        "label",
        _unsorted,
        _label,
        {"the same acts": (Step(label_on, "done"),)},
        (
            "project.json",
            "pictures.json",
            "journal.jsonl",
            "rows.npz",
            "features/",
        ),
    ),
)
