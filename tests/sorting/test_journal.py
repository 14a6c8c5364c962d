"""Journals of one folder never replace each other, and a damaged one is refused."""

import json
import os
import threading

import pytest
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from helpers.sorting import predicted
from protorect.errors import DataError
from protorect.labeling.placements import FOLDER, Placement, Plan, load_plans, new_name, write_plan
from protorect.labeling.prediction import Prediction


def test_journals_written_at_the_same_time_are_all_kept(colors):
    rows = predicted(colors.pictures)
    placements = [
        Placement(row, f"one/{number}.png", content)
        for number, (row, content) in enumerate(zip(rows, rows.contents, strict=True))
    ]
    plans = []
    barrier = threading.Barrier(len(placements))

    def write(placement):
        barrier.wait()
        plan = Plan("move", (), "cspn", True, (placement,), new_name(colors.out))
        plans.append(plan)
        write_plan(colors.out, plan)

    threads = [threading.Thread(target=write, args=(placement,)) for placement in placements]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(load_plans(colors.out), key=lambda plan: plan.name) == sorted(
        plans, key=lambda plan: plan.name
    )
    assert len({plan.name for plan in plans}) == 24


def test_plans_are_loaded_in_the_order_in_which_they_were_written(colors):
    plans = []
    for number in range(12):
        plans.append(Plan("link", (("/e", "cat"),), str(number), True, (), new_name(colors.out)))
        write_plan(colors.out, plans[-1])
    assert load_plans(colors.out) == plans


HEAD = {"format": 1, "mode": "move", "examples": [["/e/1.png", "cat"]], "method": "cspn"}
HEAD |= {"made_folder": True}
ROW = ["/p/\udcff.png", "cat", 0.75, "dog", 0.5, 1, "cat", "cat/\udcff.png", "0" * 64, ""]


def as_text(*lines):
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def write_journal(folder, content):
    path = folder / FOLDER / "0001.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def changed(position, value):
    row = list(ROW)
    row[position] = value
    return row


def test_an_edited_added_or_removed_line_is_named(tmp_path):
    rows = [
        Placement(Prediction(f"/p/{n}", "a", 1.0, "b", 1.0, 1.0, "a"), f"a/{n}", "0") for n in "123"
    ]
    write_plan(tmp_path, Plan("move", (), "cspn", True, tuple(rows), "0001"))
    (path,) = (tmp_path / FOLDER).iterdir()
    head, *lines, end = path.read_text().splitlines(keepends=True)
    for number, line in enumerate(lines, 2):
        edited = [
            one.replace("cspn", "x").replace("/p/", "/q/") if one == line else one for one in lines
        ]
        path.write_text("".join([head, *edited, end]))
        with pytest.raises(DataError, match=rf"jsonl, line {number}, is damaged: it was edited"):
            load_plans(tmp_path)
    for others in (lines[:-1], [*lines, lines[-1]]):
        path.write_text("".join([head, *others, end]))
        with pytest.raises(DataError, match=r"jsonl is damaged: lines were added or removed"):
            load_plans(tmp_path)


def test_names_of_files_need_not_be_utf8(tmp_path):
    write_journal(tmp_path, as_text(HEAD, ROW))
    (plan,) = load_plans(tmp_path)
    prediction = Prediction(os.fsdecode(b"/p/\xff.png"), *ROW[1:7])
    placement = Placement(prediction, os.fsdecode(b"cat/\xff.png"), "0" * 64)
    head = ("move", (("/e/1.png", "cat"),), "cspn", True)
    assert plan == Plan(*head, (placement,), "0001", sealed=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "format is missing|mode is missing"),
        (as_text([]), "line 1, is damaged: it is"),
        (as_text(HEAD | {"format": "1"}), "line 1, is damaged: format is '1'"),
        (as_text(HEAD | {"mode": "burn"}), "mode is 'burn'; it must be 'copy' or 'link' or 'move'"),
        (
            as_text(HEAD | {"examples": [["a"]]}),
            r"examples\[0\] is \['a'\]; it must be a list of 2",
        ),
        (as_text(HEAD | {"made_folder": 1}), "made_folder is 1; it must be true or false"),
        (as_text(HEAD, ROW, {}), "line 3, is damaged: it is {}; it must be a list of 10"),
        (as_text(HEAD, ROW[:-1]), "line 2, is damaged: it is .*; it must be a list of 10"),
        (as_text(HEAD, ROW)[:-5], "line 2, is damaged: it is not JSON"),
        (as_text(HEAD) + b"[" * 100_000, "line 2, is damaged: it is not JSON"),
        (as_text(HEAD, changed(2, float("nan"))), r"line 2, is damaged: \[2\] is nan"),
        (as_text(HEAD, changed(7, "../a")), "'../a' is no file in the folder"),
        (as_text(HEAD, changed(7, "a/../../b")), "'a/../../b' is no file in the folder"),
        (as_text(HEAD, changed(7, "/a")), "'/a' is no file in the folder"),
        (as_text(HEAD, changed(7, "")), "'' is no file in the folder"),
        (as_text(HEAD, changed(7, "a/")), "'a/' is no file in the folder"),
        (as_text(HEAD, changed(7, "a\0")), r"line 2, is damaged: \[7\] is 'a\\x00'"),
        (as_text(HEAD, changed(0, "relative")), "is no file in the folder"),
    ],
)
def test_a_damaged_journal_is_refused(tmp_path, content, message):
    write_journal(tmp_path, content)
    with pytest.raises(DataError, match=r"0001\.jsonl.* Nothing was touched\.") as caught:
        load_plans(tmp_path)
    caught.match(message)


def test_a_journal_of_a_newer_format_need_not_look_like_ours(tmp_path):
    write_journal(tmp_path, as_text({"format": 3}, {"any": "thing"}))
    with pytest.raises(DataError, match="was written by a newer protorect"):
        load_plans(tmp_path)


@damaged_files
@given(damages(as_text(HEAD, ROW, ROW)))
def test_a_damaged_journal_stays_in_its_folder_or_is_refused(tmp_path, content):
    def inside(plans):
        targets = [placement.target for plan in plans for placement in plan.placements]
        return all((tmp_path / one).resolve().is_relative_to(tmp_path) for one in targets)

    (tmp_path / FOLDER).mkdir(parents=True, exist_ok=True)
    path = tmp_path / FOLDER / "0001.jsonl"
    read_or_refused(path, content, lambda _: load_plans(tmp_path), inside)
