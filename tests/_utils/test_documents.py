"""JSON, JSON lines and TOML files: as described, or refused with the file's name and the reason."""

import itertools
import json
import math
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from helpers.damage import damaged_files, damages, read_or_refused
from protorect._utils.documents import (
    COUNT,
    checked,
    parse_json,
    read_json,
    read_json_lines,
    read_toml,
)
from protorect.errors import DataError

DESCRIPTION = {
    "name": str,
    "file": Path,
    "count": COUNT,
    "share": float,
    "on": bool,
    "mode": {"link", "copy", None},
    "pair": (str, float),
    "names": [str],
    "by name": {str: {"size": range(3)}},
    "anything": object,
    "note?": str,
}
VALUE = {
    "name": "ä",
    "file": "a\udcff",
    "count": 3,
    "share": 1,
    "on": False,
    "mode": None,
    "pair": ["a", 0.5],
    "names": ["x", "y"],
    "by name": {"one": {"size": 2}, "two": {"size": 0, "more": 1}},
    "anything": [[{}]],
    "more": 1,
}


def test_a_value_as_described_is_returned():
    assert checked(VALUE, DESCRIPTION) is VALUE
    assert parse_json(json.dumps(VALUE), DESCRIPTION) == VALUE
    checked(VALUE | {"note": "n", "mode": "copy"}, DESCRIPTION)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("name", 1, "name is 1; it must be text"),
        ("name", None, "name is None; it must be text"),
        ("name", "\ud800", "name is '\\ud800'; it must be text"),
        ("name", "a\0", "name is 'a\\x00'; it must be text"),
        ("file", "\ud800", "file is '\\ud800'; it must be a file name"),
        ("file", "a\0", "file is 'a\\x00'; it must be a file name"),
        ("count", -1, "count is -1; it must be a whole number in 0 .. 9007199254740991"),
        ("count", True, "count is True; it must be a whole number in 0 .. 9007199254740991"),
        ("count", 1.0, "count is 1.0; it must be a whole number in 0 .. 9007199254740991"),
        ("count", 2**53, f"count is {2**53}; it must be a whole number in 0 .. 9007199254740991"),
        ("share", math.nan, "share is nan; it must be a finite number"),
        ("share", math.inf, "share is inf; it must be a finite number"),
        ("share", True, "share is True; it must be a finite number"),
        ("share", "1", "share is '1'; it must be a finite number"),
        ("on", 1, "on is 1; it must be true or false"),
        ("mode", "move", "mode is 'move'; it must be 'copy' or 'link' or None"),
        ("mode", [], "mode is []; it must be 'copy' or 'link' or None"),
        ("pair", ["a"], "pair is ['a']; it must be a list of 2"),
        ("pair", ["a", "b"], "pair[1] is 'b'; it must be a finite number"),
        ("names", {}, "names is {}; it must be a list"),
        ("names", ["a", 2], "names[1] is 2; it must be text"),
        ("by name", [], "by name is []; it must be an object"),
        ("by name", {"a": {}}, "by name.a.size is missing; it must be a whole number in 0 .. 2"),
        ("note", 3, "note is 3; it must be text"),
    ],
)
def test_what_is_not_as_described_is_named(key, value, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        checked(VALUE | {key: value}, DESCRIPTION)


def test_a_missing_key_and_another_type_of_document():
    for key in DESCRIPTION.keys() & VALUE.keys():
        with pytest.raises(ValueError, match=f"^{key} is missing; it must be"):
            checked({k: v for k, v in VALUE.items() if k != key}, DESCRIPTION)
    with pytest.raises(ValueError, match=r"^it is \[\]; it must be an object"):
        checked([], DESCRIPTION)


def nested(levels, opening="[", closing="]"):
    return (opening * levels + closing * levels).encode()


HUGE = b'{"a": ' + b"9" * 4000 + b"}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b'{"a": 1}x',
        b'{"a": ' + b"9" * 5000 + b"}",
        nested(101),
        nested(900),
        nested(100_000),
        b'{"a":' * 900 + b"1" + b"}" * 900,
        "{}".encode("utf-16"),
    ],
    ids=["empty", "brace", "bytes", "more", "digits", "101", "900", "deep", "objects", "utf-16"],
)
def test_a_damaged_file_is_refused_with_its_name(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.json is damaged: .*\. Mend it\.$") as caught:
        read_json(path, object, "Mend it.")
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


def test_what_is_unusual_and_harmless(tmp_path):
    path = tmp_path / "a.json"
    for content, value in (
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"a": 2, "a": 1}', {"a": 1}),
        (nested(99), json.loads(nested(99))),
        (HUGE, json.loads(HUGE)),
    ):
        path.write_bytes(content)
        assert read_json(path, object) == value
    with pytest.raises(
        DataError, match=r"a\.json is damaged: a is 99.*; it must be a finite number"
    ):
        read_json(path, {"a": float})


def test_a_file_that_is_too_long_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("protorect._utils.files.read_bytes.__defaults__", (10,))
    (tmp_path / "a.json").write_text("[" + " " * 10 + "]")
    with pytest.raises(DataError, match=r"cannot read .*a\.json: 12 bytes are too many"):
        read_json(tmp_path / "a.json", list)


@pytest.mark.parametrize("read", [lambda path: read_json(path, object), read_toml])
def test_what_is_not_a_regular_file_is_refused_at_once(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (
        (tmp_path / "missing", "No such file"),
        (tmp_path, "Is a directory"),
        (tmp_path / "pipe", "it is not a regular file"),
        (Path("/dev/zero"), "it is not a regular file"),
    ):
        with pytest.raises(DataError, match=f"cannot read {path}: {reason}"):
            read(path)


def lines_of(path, **options):
    return list(read_json_lines(path, itertools.repeat({"epoch": COUNT}), "Mend it.", **options))


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"epoch": 1}\n{"epoch": -2}\n')
    with pytest.raises(DataError, match=r"a\.jsonl, line 2, is damaged: epoch is -2; .* Mend it\."):
        lines_of(path, cut_off=True)  # this line is complete
    path.write_text('{"epoch": 1}\n{"epo')
    with pytest.raises(DataError, match=r"a\.jsonl, line 2, is damaged: it is not JSON"):
        lines_of(path)
    assert lines_of(path, cut_off=True) == [{"epoch": 1}]


@pytest.mark.parametrize(
    "content",
    [
        b"a = ",
        b"\xff = 1",
        b"a = " + b"9" * 5000,
        b"a = " + nested(900),
        b"a = " + nested(10_000),
        b"a." * 200 + b"b = 1",
        b"a." * 16_000 + b"b = 1",
        b"# " + b"x" * 2**15,
    ],
)
def test_a_damaged_toml_file_is_refused(tmp_path, content):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.toml is not a TOML file|a\.toml: .* are too many"):
        read_toml(path)


@damaged_files
@given(damages(json.dumps(VALUE).encode()))
def test_damaged_json_is_as_described_or_refused(tmp_path, content):
    def as_described(value):
        return checked(value, DESCRIPTION) is value

    read_or_refused(tmp_path / "a", content, lambda p: read_json(p, DESCRIPTION), as_described)


@damaged_files
@given(damages(b'{"epoch": 1, "loss": 0.5}\n{"epoch": 2, "loss": 0.25}\n'), st.booleans())
def test_damaged_lines_are_as_described_or_refused(tmp_path, content, cut_off):
    def epochs(lines):
        return all(type(line["epoch"]) is int for line in lines)

    read_or_refused(tmp_path / "a", content, lambda p: lines_of(p, cut_off=cut_off), epochs)


@damaged_files
@given(damages(b'epochs = 12\nrates = [[0, 0.1], [5, 0.01]]\nbackbone = "conv64"\n[a.b]\nc = 1\n'))
def test_damaged_toml_is_a_table_or_refused(tmp_path, content):
    read_or_refused(tmp_path / "a", content, read_toml, lambda table: isinstance(table, dict))
