"""No file is ever harmed: placed, put back, killed half-way, gone on with."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from helpers.sorting import fill, picture, predicted
from protorect.cli import main
from protorect.errors import DataError, OptionError, PartialError
from protorect.sorting import folder as folders
from protorect.sorting import placing
from protorect.sorting.folder import SortedFolder, check_folder_names
from protorect.sorting.placing import content_of


def undone(world):
    return SortedFolder.open(world.out).undo()


@pytest.mark.parametrize("mode", ["link", "copy", "move"])
def test_pictures_are_placed_and_put_back(world, mode):
    before = world.tree()
    folder, problems = fill(world, mode)
    assert problems == []
    placed = {path.relative_to(world.out) for path in world.out.rglob("*.png")}
    assert len(placed) == 24
    assert all(path.parts[0] in ("blue", "green", "red") for path in placed)
    assert (world.pile / "red" / "0.png").exists() == (mode != "move")
    assert (world.out / "red" / "0.png").is_symlink() == (mode == "link")
    assert folder.left() == 0
    assert undone(world) == []
    assert world.tree() == before


@pytest.mark.parametrize("mode", ["link", "copy", "move"])
def test_the_same_name_twice_is_kept_apart(world, mode):
    before = world.tree()
    everything = predicted(world.pile, lambda path: "one")
    SortedFolder.open(world.out).add(everything, mode, [])
    names = sorted(path.name for path in (world.out / "one").iterdir())
    assert len(names) == 24
    assert names[:3] == ["0 (2).png", "0 (3).png", "0.png"]
    contents = {content_of(path) for path in (world.out / "one").iterdir()}
    assert contents == set(everything.contents)
    assert undone(world) == []
    assert world.tree() == before


KILLED = """
import os, signal, sys
sys.path[:0] = [{tests!r}]
from types import SimpleNamespace
from pathlib import Path
from helpers.sorting import fill
from protorect.sorting import placing
replace, unlink = os.replace, Path.unlink
count = 0

def dying(source, target):
    global count
    if str(target).endswith(".png"):
        count += 1
        if {across} and {pile!r} in str(source):
            raise OSError({exdev}, "Invalid cross-device link")
        if count >= 9 and {before}:
            os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
    if count >= 9 and str(target).endswith(".png"):
        os.kill(os.getpid(), signal.SIGKILL)

os.replace = dying
fill(SimpleNamespace(out=Path({out!r}), pile=Path({pile!r})), {mode!r})
"""


def killed(world, mode="move", before=False, across=False):
    """Sort in another process that dies at its ninth picture."""
    tests = os.path.dirname(os.path.dirname(__file__))
    code = KILLED.format(
        tests=tests,
        across=across,
        before=before,
        mode=mode,
        exdev=errno.EXDEV,
        out=str(world.out),
        pile=str(world.pile),
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    folder = SortedFolder.open(world.out)
    assert 0 < folder.left() < 24
    return folder


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("across", [True, False])
def test_killed_half_way_undo_restores_everything(world, before, across):
    tree = world.tree()
    killed(world, before=before, across=across)
    assert undone(world) == []
    assert world.tree() == tree


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("across", [True, False])
def test_killed_half_way_it_goes_on(world, before, across):
    tree = world.tree()
    folder = killed(world, before=before, across=across)
    assert folder.finish() == []
    assert folder.left() == 0
    assert not list(world.pile.rglob("*.png"))
    assert len(list(world.out.rglob("*.png"))) == 24
    assert not list(world.out.rglob("*.part"))
    assert undone(world) == []
    assert world.tree() == tree


def test_a_copy_killed_half_way_is_undone(world):
    tree = world.tree()
    killed(world, mode="copy", before=True)
    assert undone(world) == []
    assert world.tree() == tree


def test_the_command_killed_at_any_moment(world):
    for number in range(200):
        picture(world.pile / "more" / f"{number}.png", (200, 60, 50), 1000 + number)
    tree = world.tree()
    sort = [world.pile, "--examples", world.examples, "--out", world.out, "--move"]
    code = "import sys; from protorect.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "sort", *map(str, sort), "--network", world.weights]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not any(world.out.rglob("*.png")):
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert any(world.out.rglob("*.png"))
    assert main(["undo", str(world.out)]) == 0
    assert world.tree() == tree


def test_the_journal_is_there_before_the_first_picture_moves(world, monkeypatch):
    left = []
    place = folders.place

    def looking(*given):
        left.append(SortedFolder.open(world.out).left())
        place(*given)

    monkeypatch.setattr(folders, "place", looking)
    fill(world, "move")
    assert left == list(range(24, 0, -1))


def test_a_full_disk_stops_it_and_nothing_is_lost(world, monkeypatch):
    tree = world.tree()
    copies = []

    def full(source, target, **options):
        copies.append(source)
        if len(copies) == 5:
            open(target, "wb").close()
            raise OSError(errno.ENOSPC, "No space left on device")
        return copy(source, target, **options)

    copy = shutil.copy2
    monkeypatch.setattr(shutil, "copy2", full)
    message = "stopped after 4 of 24 pictures: No space left on device. Make room"
    with pytest.raises(PartialError, match=message):
        fill(world, "copy")
    assert undone(world) == []
    assert world.tree() == tree


def test_links_are_moved_so_that_they_still_lead_somewhere(world):
    target = world.pile / "red" / "0.png"
    elsewhere = world.root / "elsewhere.png"
    target.rename(elsewhere)
    target.symlink_to("../../elsewhere.png")
    (world.pile / "red" / "1.png").unlink()
    (world.pile / "red" / "1.png").symlink_to(elsewhere)
    tree = world.tree()
    fill(world, "move")
    assert (world.out / "red" / "0.png").read_bytes() == elsewhere.read_bytes()
    assert (world.out / "red" / "1.png").read_bytes() == elsewhere.read_bytes()
    assert undone(world) == []
    assert world.tree() == tree


def test_what_the_user_changed_stays(world):
    fill(world, "copy")
    changed = world.out / "red" / "0.png"
    changed.write_bytes(b"my notes")
    problems = undone(world)
    assert [problem.reason for problem in problems] == ["the copy was changed; left as it is"]
    assert changed.read_bytes() == b"my notes"
    assert len(list(world.out.rglob("*.png"))) == 1
    changed.unlink()
    assert undone(world) == []
    assert not world.out.exists()


def test_a_new_file_in_the_old_place_is_not_replaced(world):
    fill(world, "move")
    (world.pile / "red" / "0.png").write_bytes(b"new")
    problems = undone(world)
    assert len(problems) == 1
    assert "both stay" in problems[0].reason
    assert (world.pile / "red" / "0.png").read_bytes() == b"new"
    assert (world.out / "red" / "0.png").stat().st_size > 100


def test_a_file_that_appeared_in_the_folder_is_not_replaced(world, monkeypatch):
    place = placing._PLACE["move"]

    def late(source, target):
        if target.name == "3.png" and not target.exists():
            target.write_bytes(b"mine")
        place(source, target)

    monkeypatch.setitem(placing._PLACE, "move", late)
    _, problems = fill(world, "move")
    assert [problem.reason for problem in problems] == ["File exists"] * 3
    assert (world.out / "red" / "3.png").read_bytes() == b"mine"
    assert (world.pile / "red" / "3.png").exists()


def test_a_picture_gone_before_it_was_placed(world, monkeypatch):
    write = folders.journal.write_batch
    gone = world.pile / "red" / "3.png"
    monkeypatch.setattr(
        folders.journal, "write_batch", lambda *given: (write(*given), gone.unlink())
    )
    _, problems = fill(world, "move")
    assert problems == [(str(gone), "it is gone")]


def test_a_folder_of_somebody_else_is_refused(world):
    world.out.mkdir()
    (world.out / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match="not empty and was not made by `protorect sort`"):
        SortedFolder.open(world.out)
    with pytest.raises(DataError, match="is a file"):
        SortedFolder.open(world.out / "letter.txt")


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [*lines[:1], "{"],
        lambda lines: ["[]", *lines[1:]],
        lambda lines: [lines[0], lines[1].replace('"blue/0.png"', '"../../escaped.png"')],
        lambda lines: [lines[0].replace("move", "burn"), *lines[1:]],
    ],
)
def test_a_damaged_journal_touches_nothing(world, damage):
    fill(world, "move")
    path = world.out / "journal" / "0001.jsonl"
    path.write_text("\n".join(damage(path.read_text().splitlines())) + "\n")
    tree = world.tree()
    with pytest.raises(DataError, match=r"0001.jsonl is damaged; nothing was touched"):
        undone(world)
    assert world.tree() == tree


def test_a_journal_of_a_later_version(world):
    fill(world, "move")
    path = world.out / "journal" / "0001.jsonl"
    head, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(head) | {"format": 99}), *rest]))
    with pytest.raises(DataError, match="written by a newer protorect"):
        SortedFolder.open(world.out)


@pytest.mark.parametrize(
    "label",
    ["a/b", "..", "", " ", "_unknown", "Journal", "index.html", "a\nb", "x" * 300, ".hidden"],
)
def test_labels_that_cannot_be_folders(label):
    with pytest.raises(OptionError, match="cannot be the name of a folder"):
        check_folder_names(["cat", label])


def test_labels_that_can():
    check_folder_names(["cat", "Äpfel (grün)", "a_b-c.d", "12"])
