import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers.privileges import permissions_count
from protorect import DataError
from protorect._utils.files import (
    atomic_folder,
    atomic_write,
    check_writable,
    names_in,
    open_file,
    read_bytes,
    read_text,
    write_text,
)


def test_text_is_written_and_replaced(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_text(path, "first")
    write_text(path, "zweite ü")
    assert path.read_text(encoding="utf-8") == "zweite ü"
    assert os.listdir(path.parent) == ["a.txt"]


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_permissions_are_those_of_an_ordinary_file(tmp_path):
    write_text(tmp_path / "a.txt", "x")
    (tmp_path / "b.txt").write_text("x")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.txt", "b.txt")}
    assert len(modes) == 1


@pytest.mark.parametrize("write", [check_writable, lambda path: write_text(path, "x")])
def test_an_unwritable_path_is_refused_with_the_reason(tmp_path, write):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*file/a.txt: .*\.$"):
        write(tmp_path / "file" / "a.txt")
    with pytest.raises(DataError, match="it is a folder; give the name of a file"):
        write(tmp_path)


def test_a_check_leaves_no_file(tmp_path):
    check_writable(tmp_path / "a.txt")
    assert os.listdir(tmp_path) == []


def test_a_check_makes_no_folders(tmp_path):
    check_writable(tmp_path / "not" / "there" / "a.txt")
    assert os.listdir(tmp_path) == []


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_permissions_of_a_replaced_file_are_kept(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    (tmp_path / "a.txt").chmod(0o600)
    write_text(tmp_path / "a.txt", "new")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o600


def test_a_pipe_is_written_into(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(pipe.read_text)
        write_text(pipe, "through")
        assert read.result(timeout=10) == "through"
    assert pipe.is_fifo()


def test_a_folder_appears_when_it_is_filled_and_replaces_an_empty_one(tmp_path):
    out = tmp_path / "new" / "out"
    out.mkdir(parents=True)
    with atomic_folder(out) as partial:
        (partial / "a.txt").write_text("x")
        assert os.listdir(out) == []
    assert os.listdir(out.parent) == ["out"]
    assert (out / "a.txt").read_text() == "x"


def test_a_folder_that_fails_leaves_nothing(tmp_path):
    def fail():
        with atomic_folder(tmp_path / "out") as partial:
            (partial / "a.txt").write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert os.listdir(tmp_path) == []


def test_a_folder_is_written_by_one_command_at_a_time(tmp_path):
    with atomic_folder(tmp_path / "out") as partial:
        (partial / "a.txt").write_text("x")
        with pytest.raises(DataError, match="out is being written by another command"):
            atomic_folder(tmp_path / "out").__enter__()
        assert partial.exists()
    assert os.listdir(tmp_path / "out") == ["a.txt"]


def test_a_folder_with_something_in_it_is_not_replaced(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(DataError, match="exists already; remove it or choose another"):
            atomic_folder(path).__enter__()


def test_text_is_read_with_and_without_a_byte_order_mark(tmp_path):
    for mark in (b"", b"\xef\xbb\xbf"):
        (tmp_path / "a.txt").write_bytes(mark + "ü".encode())
        assert read_text(tmp_path / "a.txt") == "ü"


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab\xff")
    with pytest.raises(DataError, match=r"cannot read .*a\.txt: byte 2 is not UTF-8\."):
        read_text(tmp_path / "a.txt")
    assert os.fsencode(read_text(tmp_path / "a.txt", errors="surrogateescape")) == b"ab\xff"


def test_a_file_is_read_up_to_a_length(tmp_path):
    (tmp_path / "a").write_bytes(b"1234")
    assert read_bytes(tmp_path / "a", 4) == b"1234"
    with pytest.raises(DataError, match="cannot read .*a: 4 bytes are too many"):
        read_bytes(tmp_path / "a", 3)


def test_only_regular_files_are_opened_and_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("missing")
    for path, reason in (
        ("missing", "No such file"),
        ("link", "No such file"),
        ("", "Is a directory"),
        ("pipe", "it is not a regular file"),
        ("/dev/null", "it is not a regular file"),
    ):
        with (
            pytest.raises(DataError, match=f"^cannot read .*: {reason}"),
            open_file(tmp_path / path),
        ):
            pass


def test_a_file_that_may_not_be_read(tmp_path):
    (tmp_path / "a").write_bytes(b"1234")
    (tmp_path / "a").chmod(0)
    with permissions_count(), pytest.raises(DataError, match="cannot read .*a: Permission denied"):
        read_bytes(tmp_path / "a")


def test_a_folder_that_cannot_be_listed_is_named(tmp_path, monkeypatch):
    (tmp_path / "b").touch()
    (tmp_path / "a").touch()
    assert names_in(tmp_path) == ["a", "b"]
    assert names_in(tmp_path / "missing") == names_in(tmp_path / "a") == []

    def fails(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "listdir", fails)
    with pytest.raises(DataError, match=f"^cannot read {tmp_path}: Input/output error.$"):
        names_in(tmp_path)


def test_temporary_files_of_killed_commands_are_removed_and_those_in_use_are_not(tmp_path):
    killed = tmp_path / ".protorect-new-abcd1234.txt"
    killed.write_text("half")
    others = [tmp_path / ".protorect-new-mine", tmp_path / ".abcd1234.txt"]
    for other in others:
        other.write_text("mine")
    with atomic_write(tmp_path / "a.txt") as first:
        assert not killed.exists()
        first.write_text("first")
        write_text(tmp_path / "b.txt", "second")
        assert first.exists()
    assert {path.name for path in tmp_path.iterdir()} == {
        "a.txt",
        "b.txt",
        *(o.name for o in others),
    }


def test_the_longest_names_are_written(tmp_path):
    write_text(tmp_path / ("n" * 251 + ".txt"), "x")
    write_text(tmp_path / ("n." + "s" * 253), "x")
    with atomic_folder(tmp_path / ("f" * 255)) as partial:
        (partial / "a").touch()
    assert len(os.listdir(tmp_path)) == 3
