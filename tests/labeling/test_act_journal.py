"""The journal of acts: torn, edited, damaged, on a full disk."""

import errno
import os
import zlib

import pytest
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from protorect import DataError
from protorect.labeling.act_journal import ActJournal

ACTS = [
    {"kind": "label", "labels": [["cat", [1, 2]], [None, [3]]]},
    {"kind": "add_class", "name": "dög", "ids": [], "key": None, "act_id": "x"},
    {"kind": "undo"},
]


@pytest.fixture
def journal(tmp_path):
    journal = ActJournal.create(tmp_path / "journal.jsonl", "p")
    for act in ACTS:
        journal.append(act)
    yield journal
    journal.close()


def load(path):
    journal, records, torn = ActJournal.load(path)
    return journal, [{k: one[k] for k in one if k != "n"} for one in records], torn


def test_a_closed_journal_has_no_open_file(tmp_path):
    path = tmp_path / "journal.jsonl"
    ActJournal.create(path, "p").close()
    names = {os.path.realpath(f"/dev/fd/{one}") for one in os.listdir("/dev/fd")}
    assert str(path.resolve()) not in names
    ActJournal.load(path)[0].close()  # that was not opened for writing


def test_what_was_written_is_read(journal):
    loaded, records, torn = load(journal.path)
    assert (records, torn, loaded.revision, loaded.project) == (ACTS, False, 3, "p")
    loaded.open_for_writing()
    assert loaded.append({"kind": "redo"}) == 4
    loaded.close()
    assert load(journal.path)[1] == [*ACTS, {"kind": "redo"}]


@pytest.mark.parametrize("left", range(1, 40, 3))
def test_a_torn_last_line_is_dropped(journal, left):
    whole = journal.path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    journal.path.write_bytes(whole[: last + left])
    loaded, records, torn = load(journal.path)
    assert (records, torn) == (ACTS[:-1], True)
    loaded.open_for_writing()
    loaded.append({"kind": "redo"})
    loaded.close()
    assert load(journal.path)[1:] == ([*ACTS[:-1], {"kind": "redo"}], False)


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda lines: [lines[0], lines[1].replace(b"cat", b"dog"), *lines[2:]], 2),
        (lambda lines: [lines[0], *lines[2:]], 2),
        (lambda lines: [*lines[:3], lines[2], lines[3]], 4),
        (lambda lines: [*lines[:2], b"\n", *lines[2:]], 3),
        (lambda lines: [lines[0].replace(b'"p"', b'"q"'), *lines[1:]], 1),
    ],
)
def test_a_journal_edited_by_hand_is_refused_with_its_line(journal, edit, line):
    lines = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(b"".join(edit(lines)))
    with pytest.raises(DataError, match=rf"journal\.jsonl, line {line}: .* first {line - 1} lines"):
        load(journal.path)


def test_a_newer_journal_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("protorect.labeling.act_journal.VERSION", 2)
    ActJournal.create(tmp_path / "j", "p").close()
    monkeypatch.undo()
    with pytest.raises(DataError, match="written by a newer protorect .its version is 2"):
        load(tmp_path / "j")


def test_another_file_is_no_journal(tmp_path):
    (tmp_path / "j").write_bytes(b"")
    with pytest.raises(DataError, match="not the journal of a labeling project"):
        load(tmp_path / "j")


@pytest.mark.parametrize("failing", ["write", "fsync"])
@pytest.mark.parametrize("part", [0, 10])
def test_on_a_full_disk_the_act_is_refused_and_the_journal_stays_usable(
    journal, monkeypatch, failing, part
):
    before = journal.path.read_bytes()
    write = os.write

    def full(file, data=b""):
        if failing == "write" and part:
            write(file, data[:part])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, failing, full)
    with pytest.raises(DataError, match="cannot write .*: No space left on device"):
        journal.append({"kind": "redo"})
    monkeypatch.undo()
    assert journal.path.read_bytes() == before
    assert journal.append({"kind": "redo"}) == 4
    assert load(journal.path)[1] == [*ACTS, {"kind": "redo"}]


def test_every_act_is_synced_before_it_is_answered(journal, monkeypatch):
    synced = []
    fsync = os.fsync

    def record(file):
        synced.append(os.fstat(file).st_size)
        fsync(file)

    monkeypatch.setattr(os, "fsync", record)
    journal.append({"kind": "redo"})
    assert synced == [journal.path.stat().st_size]


def test_a_journal_that_is_only_read_cannot_be_written(journal):
    loaded, _, _ = load(journal.path)
    with pytest.raises(DataError, match="opened for reading"):
        loaded.append({"kind": "undo"})


HEAD = b'{"n":0,"format":"protorect-labeling","version":1,"project":"p"}'
BODY = b'{"n":1,"kind":"add_class","name":"cat","ids":[1,2],"key":null,"act_id":"x"}'


def with_checksums(*bodies):
    check, lines = 0, []
    for body in bodies:
        check = zlib.crc32(body, check)
        lines.append(body[:-1] + f',"check":"{check:08x}"}}\n'.encode())
    return b"".join(lines)


@damaged_files
@given(damages(BODY))
def test_damaged_records_with_right_checksums_are_read_or_refused(tmp_path_factory, body):
    path = tmp_path_factory.mktemp("damaged") / "journal.jsonl"
    read_or_refused(
        path, with_checksums(HEAD, body), ActJournal.load, lambda loaded: len(loaded[1]) <= 1
    )


@damaged_files
@given(damages(with_checksums(HEAD, BODY)))
def test_damaged_journals_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("damaged") / "journal.jsonl"
    read_or_refused(path, content, ActJournal.load, lambda loaded: len(loaded[1]) <= 1)
