"""Pictures are placed, put back, and never lost, whatever interrupts it."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.sorting import fill, picture, predicted, undo, unplaced
from protorect._utils.files import sha256_of_file
from protorect.cli import main
from protorect.errors import DataError, OptionError, PartialError
from protorect.sorting import folder as folders, placing
from protorect.sorting.folder import check_folder_names, open_folder

MODES = ["link", "copy", "move"]


@pytest.mark.parametrize("mode", MODES)
def test_pictures_are_placed_and_put_back(colors, mode):
    before = colors.tree()
    problems, replaced_links = fill(colors, mode)
    assert problems == []
    assert replaced_links.total() == 0
    placed = {path.relative_to(colors.out) for path in colors.out.rglob("*.png")}
    assert len(placed) == 24
    assert all(path.parts[0] in ("blue", "green", "red") for path in placed)
    assert (colors.pictures / "red" / "0.png").exists() == (mode != "move")
    assert (colors.out / "red" / "0.png").is_symlink() == (mode == "link")
    assert unplaced(colors) == 0
    assert undo(colors) == []
    assert colors.tree() == before


@pytest.mark.parametrize("mode", MODES)
def test_equal_names_get_numbers(colors, mode):
    before = colors.tree()
    everything = predicted(colors.pictures, lambda path: "one")
    with open_folder(colors.out) as folder:
        folder.add(everything, mode, [])
    names = sorted(path.name for path in (colors.out / "one").iterdir())
    assert len(names) == 24
    assert names[:3] == ["0 (2).png", "0 (3).png", "0.png"]
    contents = {sha256_of_file(path) for path in (colors.out / "one").iterdir()}
    assert contents == set(everything.contents)
    assert undo(colors) == []
    assert colors.tree() == before


KILLED = """
import os, signal, sys
sys.path[:0] = [{tests!r}]
from types import SimpleNamespace
from pathlib import Path
from helpers.sorting import fill
replace = os.replace
count = 0

def dying(source, target):
    global count
    if str(target).endswith(".png"):
        count += 1
        if {across} and {pictures!r} in str(source):
            raise OSError({exdev}, "Invalid cross-device link")
        if count >= 9 and {before}:
            os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
    if count >= 9 and str(target).endswith(".png"):
        os.kill(os.getpid(), signal.SIGKILL)

os.replace = dying
fill(SimpleNamespace(out=Path({out!r}), pictures=Path({pictures!r})), {mode!r})
"""


def kill_while_sorting(colors, mode="move", before=False, across=False):
    """Sort in another process that is killed at its ninth picture."""
    code = KILLED.format(
        tests=str(Path(__file__).parents[1]),
        across=across,
        before=before,
        mode=mode,
        exdev=errno.EXDEV,
        out=str(colors.out),
        pictures=str(colors.pictures),
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert 0 < unplaced(colors) < 24


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("across", [True, False])
def test_undo_after_a_kill_restores_everything(colors, before, across):
    tree = colors.tree()
    kill_while_sorting(colors, before=before, across=across)
    assert undo(colors) == []
    assert colors.tree() == tree


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("across", [True, False])
def test_sorting_continues_after_a_kill(colors, before, across):
    tree = colors.tree()
    kill_while_sorting(colors, before=before, across=across)
    left = unplaced(colors)
    with open_folder(colors.out) as folder:
        assert folder.finish() == (left, [])
    assert unplaced(colors) == 0
    assert not list(colors.pictures.rglob("*.png"))
    assert len(list(colors.out.rglob("*.png"))) == 24
    assert not list(colors.out.rglob("*.part"))
    assert undo(colors) == []
    assert colors.tree() == tree


def test_undo_after_a_killed_copy(colors):
    tree = colors.tree()
    kill_while_sorting(colors, mode="copy", before=True)
    assert undo(colors) == []
    assert colors.tree() == tree


def test_undo_after_the_command_was_killed_while_moving(colors):
    for number in range(200):
        picture(colors.pictures / "more" / f"{number}.png", (200, 60, 50), 1000 + number)
    tree = colors.tree()
    sort = [colors.pictures, "--examples", colors.examples, "--out", colors.out, "--move"]
    code = "import sys; from protorect.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "sort", *map(str, sort), "--network", colors.weights]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not any(colors.out.rglob("*.png")):
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert any(colors.out.rglob("*.png"))
    assert main(["undo", str(colors.out)]) == 0
    assert colors.tree() == tree


@pytest.mark.parametrize("mode", MODES)
def test_hidden_files_of_the_user_survive_sort_and_undo(colors, mode):
    hidden = colors.pictures / "red" / ".0.png.part"
    hidden.write_text("a download of mine")
    fill(colors, mode)
    in_folder = colors.out / "red" / ".1.png.part"
    in_folder.write_text("another one")
    assert undo(colors) == []
    assert hidden.read_text() == "a download of mine"
    assert in_folder.read_text() == "another one"


def test_the_journal_is_written_before_the_first_picture_moves(colors, monkeypatch):
    counts = []
    place = folders.place

    def count_unplaced(placement, root, plan):
        counts.append(unplaced(colors))
        return place(placement, root, plan)

    monkeypatch.setattr(folders, "place", count_unplaced)
    fill(colors, "move")
    assert counts == list(range(24, 0, -1))


def test_a_full_disk_stops_the_sorting_and_nothing_is_lost(colors, monkeypatch):
    tree = colors.tree()
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
        fill(colors, "copy")
    assert undo(colors) == []
    assert colors.tree() == tree


def test_moved_symbolic_links_still_lead_to_their_pictures(colors):
    target = colors.pictures / "red" / "0.png"
    elsewhere = colors.root / "elsewhere.png"
    target.rename(elsewhere)
    target.symlink_to("../../elsewhere.png")
    (colors.pictures / "red" / "1.png").unlink()
    (colors.pictures / "red" / "1.png").symlink_to(elsewhere)
    tree = colors.tree()
    fill(colors, "move")
    assert (colors.out / "red" / "0.png").read_bytes() == elsewhere.read_bytes()
    assert (colors.out / "red" / "1.png").read_bytes() == elsewhere.read_bytes()
    assert undo(colors) == []
    assert colors.tree() == tree


class NoSymbolicLinks:
    """A system without symbolic links, and with hard links only where `hard` says so."""

    def __init__(self, monkeypatch, error, hard=lambda path: True):
        link = os.link

        def no_symlink(*_, **__):
            raise error

        def some_links(source, target):
            if not hard(source):
                raise OSError(errno.EXDEV, "Invalid cross-device link")
            link(source, target)

        monkeypatch.setattr(os, "symlink", no_symlink)
        monkeypatch.setattr(os, "link", some_links)


def windows_error():
    error = OSError(errno.EINVAL, "A required privilege is not held by the client")
    error.winerror = 1314
    return error


@pytest.mark.parametrize("error", [OSError(errno.EPERM, "not permitted"), windows_error()])
def test_without_symbolic_links_hard_links_or_copies_are_made(colors, monkeypatch, error):
    tree = colors.tree()
    NoSymbolicLinks(monkeypatch, error, hard=lambda path: "red" in str(path))
    problems, replaced_links = fill(colors, "link")
    assert problems == []
    assert replaced_links == {"hard link": 8, "copy": 16}
    red, blue = (colors.out / name / "0.png" for name in ("red", "blue"))
    assert red.samefile(colors.pictures / "red" / "0.png")
    assert blue.read_bytes() == (colors.pictures / "blue" / "0.png").read_bytes()
    assert undo(colors) == []
    assert colors.tree() == tree


@pytest.mark.parametrize("mode", ["link", "copy"])
def test_the_last_copy_of_a_picture_is_never_removed(colors, monkeypatch, mode):
    NoSymbolicLinks(monkeypatch, OSError(errno.EPERM, "not permitted"))
    fill(colors, mode)
    original = (colors.pictures / "red" / "0.png").read_bytes()
    (colors.pictures / "red" / "0.png").unlink()
    reasons = [problem.reason for problem in undo(colors)]
    assert reasons == ["the original is gone; the copy is left as it is"]
    assert (colors.out / "red" / "0.png").read_bytes() == original


@pytest.mark.parametrize("mode", ["link", "copy"])
def test_a_copy_stays_if_its_original_was_overwritten(colors, monkeypatch, mode):
    error = OSError(errno.EPERM, "not permitted")
    NoSymbolicLinks(monkeypatch, error, hard=lambda path: False)
    fill(colors, mode)
    original, copy = colors.pictures / "red" / "0.png", colors.out / "red" / "0.png"
    content = original.read_bytes()
    original.write_bytes(b"another picture")
    reasons = [problem.reason for problem in undo(colors)]
    assert reasons == [f"the original {original} was changed; the copy is left as it is"]
    assert copy.read_bytes() == content
    original.write_bytes(content)
    assert undo(colors) == []
    assert not colors.out.exists()


def test_a_changed_copy_stays(colors):
    fill(colors, "copy")
    changed = colors.out / "red" / "0.png"
    changed.write_bytes(b"my notes")
    problems = undo(colors)
    assert [problem.reason for problem in problems] == ["the copy was changed; left as it is"]
    assert changed.read_bytes() == b"my notes"
    assert len(list(colors.out.rglob("*.png"))) == 1
    changed.unlink()
    assert undo(colors) == []
    assert not colors.out.exists()


def test_a_new_file_in_the_old_place_is_not_replaced(colors):
    fill(colors, "move")
    (colors.pictures / "red" / "0.png").write_bytes(b"new")
    problems = undo(colors)
    assert len(problems) == 1
    assert "both stay" in problems[0].reason
    assert (colors.pictures / "red" / "0.png").read_bytes() == b"new"
    assert (colors.out / "red" / "0.png").stat().st_size > 100


def test_a_link_in_place_of_a_copy_stays(colors):
    fill(colors, "copy")
    target = colors.out / "red" / "0.png"
    target.unlink()
    target.symlink_to(colors.pictures / "red" / "0.png")
    assert [one.reason for one in undo(colors)] == ["the link was changed; left as it is"]
    assert target.is_symlink()


def test_a_copy_is_on_disk_before_it_has_its_name(colors, monkeypatch):
    synced = set()
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.add(os.fstat(file).st_ino), fsync(file)))
    fill(colors, "copy")
    copies = {path.stat().st_ino for path in colors.out.rglob("*.png")}
    assert copies
    assert copies <= synced


def test_a_link_in_place_of_a_moved_picture_stays(colors):
    fill(colors, "move")
    target = colors.out / "red" / "0.png"
    copy = target.rename(colors.root / "copy.png")
    target.symlink_to(copy)  # the same content
    assert [one.path for one in undo(colors)] == [str(target)]
    assert target.is_symlink()
    assert not (colors.pictures / "red" / "0.png").exists()


def test_a_file_that_appeared_in_the_folder_is_not_replaced(colors, monkeypatch):
    move = placing._move

    def late(source, target, temporary):
        if target.name == "3.png" and not target.exists():
            target.write_bytes(b"mine")
        move(source, target, temporary)

    monkeypatch.setattr(placing, "_move", late)
    problems, _ = fill(colors, "move")
    assert [problem.reason for problem in problems] == ["File exists"] * 3
    assert (colors.out / "red" / "3.png").read_bytes() == b"mine"
    assert (colors.pictures / "red" / "3.png").exists()


def test_a_picture_that_is_gone_before_it_is_placed_is_reported(colors, monkeypatch):
    write = folders.journal.write_plan
    gone = colors.pictures / "red" / "3.png"
    monkeypatch.setattr(
        folders.journal, "write_plan", lambda *arguments: (write(*arguments), gone.unlink())
    )
    problems, _ = fill(colors, "move")
    assert problems == [(str(gone), "it is gone")]


def test_a_folder_with_other_files_is_refused(colors):
    colors.out.mkdir()
    (colors.out / "letter.txt").write_text("dear")
    tree = colors.tree()
    message = "not empty and was not made by `protorect sort`"
    with pytest.raises(DataError, match=message), open_folder(colors.out):
        pass
    with pytest.raises(DataError, match="is a file"), open_folder(colors.out / "letter.txt"):
        pass
    assert colors.tree() == tree


@pytest.mark.parametrize("made", [True, False])
def test_a_folder_that_is_not_used_is_left_as_it_was(colors, made):
    if made:
        colors.out.mkdir()
    else:
        colors.out = colors.root / "several" / "folders" / "out"
    tree = colors.tree()
    with pytest.raises(RuntimeError), open_folder(colors.out):
        raise RuntimeError
    assert colors.tree() == tree


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [*lines[:1], "{"],
        lambda lines: ["[]", *lines[1:]],
        lambda lines: [lines[0], lines[1].replace('"blue/0.png"', '"../../escaped.png"')],
        lambda lines: [lines[0].replace("move", "burn"), *lines[1:]],
    ],
)
def test_a_damaged_journal_is_refused_and_nothing_is_touched(colors, damage):
    fill(colors, "move")
    (path,) = (colors.out / ".protorect" / "journal").iterdir()
    path.write_text("\n".join(damage(path.read_text().splitlines())) + "\n")
    tree = colors.tree()
    with pytest.raises(DataError, match=r"jsonl(, line \d,)? is damaged: .*\. Nothing was touched"):
        undo(colors)
    assert colors.tree() == tree


def test_a_journal_of_a_later_version_is_refused(colors):
    fill(colors, "move")
    (path,) = (colors.out / ".protorect" / "journal").iterdir()
    head, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(head) | {"format": 99}), *rest]))
    with pytest.raises(DataError, match="written by a newer protorect"):
        undo(colors)


@pytest.mark.parametrize(
    "label",
    [
        *("a/b", "..", "", " ", "_unknown", "Journal", "index.html", "a\nb", "x" * 300, ".hidden"),
        *("bell\a", "a ", "Con", "lpt1"),
    ],
)
def test_labels_that_cannot_be_folders_are_refused(label):
    with pytest.raises(OptionError, match="cannot be the name of a folder"):
        check_folder_names(["cat", label])


def test_labels_that_look_the_same_are_refused():
    with pytest.raises(OptionError, match="or look the same"):
        check_folder_names(["caf\u00e9", "cafe\u0301"])


@pytest.mark.parametrize("label", ["cat", "Äpfel (grün)", "a_b-c.d", "12", "lock"])
def test_other_labels_can_be_folders(colors, label):
    check_folder_names([label])
    tree = colors.tree()
    with open_folder(colors.out) as folder:
        folder.add(predicted(colors.pictures, lambda path: label), "link", [])
    assert (colors.out / label / "0.png").exists()
    assert undo(colors) == []
    assert colors.tree() == tree
