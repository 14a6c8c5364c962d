"""Labeling sessions: acts, answers, files."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from helpers.labeling import numbers, opened, said
from helpers.sorting import COLORS, OTHER, ColoredPictures, picture
from protorect import ConflictError, DataError, LabelingSession, NotFoundError, OptionError
from protorect.cli import main
from protorect.labeling import answers, engine
from protorect.labeling.act_journal import ActJournal
from protorect.labeling.answers import Answers, LabelingTask, calibrate, rescore
from protorect.labeling.engine import Engine
from protorect.labeling.picture_store import PictureStore
from protorect.uncertainty.thresholds import Thresholds

BLUE, GREEN, RED = "blue/0.png", "green/0.png", "red/0.png"


@pytest.fixture
def session(colors):
    with opened(colors) as session:
        yield session


def teach(session):
    """Label one picture of each color."""
    ids = numbers(session)
    for name in COLORS:
        last = session.label([ids[f"{name}/0.png"]], name)
    return last


def labels(session):
    return {one.name: one.label for one in session.pictures(limit=1000).pictures}


def test_every_act_relabels_the_others_and_undo_takes_it_back(session):
    ids = numbers(session)
    first = session.label([ids[BLUE]], "blue")
    assert (first.changed, first.summary) == ((), ())  # with one class nothing is proposed
    second = session.label([ids[RED]], "red")
    assert len(second.changed) == 22
    assert {one.from_ for one in second.changed} == {None}
    assert sum(one.count for one in second.summary) == 22
    third = session.label([ids[GREEN]], "green")
    assert {one.to for one in third.changed} == {"green"}
    assert all(name.startswith(label) for name, label in labels(session).items())
    back = session.undo()
    assert {(one.id, one.to) for one in back.changed} == {
        (one.id, one.from_) for one in third.changed
    }
    assert [one.name for one in back.state.classes] == ["blue", "red"]
    again = session.redo()
    assert {(one.id, one.to) for one in again.changed} == {
        (one.id, one.to) for one in third.changed
    }
    assert session.pictures(act=third.act).total == len(third.changed)
    changed = session.pictures(ids=[third.changed[0].id]).pictures[0]
    assert changed.was == third.changed[0].from_


def test_the_answer_is_that_of_all_labels_at_once(session):
    """Any order of acts, with undo in between: the answer depends on the labels only."""
    ids = numbers(session)
    session.label([ids[RED]], "red")
    session.label([ids[BLUE]], "green")
    session.label([ids[GREEN]], "green")
    session.label([ids[BLUE]], "blue")
    session.undo()
    session.redo()
    assert session.wait(60)
    engine = session._engine
    task = LabelingTask.of(engine.rows, engine.state, None)
    (fresh,) = calibrate(task, rescore(task, Answers.none()))
    assert np.array_equal(fresh.best, engine.answers.best)
    assert np.allclose(fresh.probability, engine.answers.probability, atol=1e-5)
    assert np.allclose(fresh.ood, engine.answers.ood, atol=1e-4)


def test_an_opened_project_goes_on_where_it_was(colors):
    with opened(colors) as session:
        teach(session)
        session.accept([one.id for one in session.pictures(label="red", limit=3).pictures])
        session.mark_unknown([numbers(session)["blue/3.png"]])
        assert session.wait(60)
        before, rows = said(session), session.pictures(order="name", limit=100).pictures
        revision, undo = session.state().revision, session.state().undo
    (colors.out / "rows.npz").unlink()  # which is made again
    with opened(colors, pictures=False) as session:
        assert said(session) == before
        assert session.pictures(order="name", limit=100).pictures == rows
        assert (session.state().revision, session.state().undo) == (revision, undo)
        for _ in range(undo):
            session.undo()
        assert said(session) == ({}, [])
        for _ in range(undo):
            session.redo()
        assert said(session) == before


def test_zero_and_one_class_propose_nothing_and_everything_else_works(session):
    assert session.state().expected_accuracy is None
    assert {one.label for one in session.pictures().pictures} == {None}
    assert len({one.name.split("/")[0] for one in session.suggest(3).pictures}) == 3  # diverse
    assert session.groups().groups
    session.add_class("blue")
    session.label([0], "blue")
    assert {one.status for one in session.pictures(limit=100).pictures} == {"proposed", "example"}
    assert [one.id for one in session.pictures(label="blue").pictures] == [0]
    assert session.suggest(5).pictures
    assert session.similar(0, 5).total == 23
    session.undo()
    session.undo()
    assert session.state().classes == ()


def test_kill_9_after_any_act_loses_none(colors):
    opened(colors).close()
    code = f"""
        import os, signal, sys
        from protorect import LabelingSession
        session = LabelingSession.open({str(colors.out)!r}, cache=False)
        for number in range(4):
            session.label([number], "abcd"[number % 2])
        session.undo()
        print(session.state().revision, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with opened(colors, pictures=False) as session:
        assert session.state().revision == int(done.stdout)
        assert said(session)[0] == {0: ("a", "example"), 1: ("b", "example"), 2: ("a", "example")}
        assert (session.state().undo, session.state().redo) == (3, 1)


def test_a_full_disk_refuses_the_act_and_the_session_stays_usable(session, monkeypatch):
    teach(session)
    before, state = said(session), session.state()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="No space left"):
        session.label([5], "red")
    with pytest.raises(DataError, match="No space left"):
        session.undo()
    monkeypatch.undo()
    assert said(session) == before
    assert session.state().revision == state.revision
    assert session.label([5], "red").ids == (5,)


def test_a_torn_line_is_dropped_and_said(colors):
    with opened(colors) as session:
        teach(session)
    with (colors.out / "journal.jsonl").open("ab") as file:
        file.write(b'{"n":9,"kind":"lab')
    with opened(colors, pictures=False) as session:
        assert "the last line of the journal was incomplete and was dropped" in session.notices
        assert len(session.state().classes) == 3
        session.label([3], "red")
    with opened(colors, pictures=False) as session:
        assert session.notices == ()


def test_an_act_that_cannot_be_carried_out_is_refused_with_its_line(colors):
    opened(colors).close()
    journal, records, _ = ActJournal.load(colors.out / "journal.jsonl")
    journal.open_for_writing()
    journal.append({"kind": "label", "labels": [["cat", [99]]]})
    journal.close()
    with pytest.raises(DataError, match=rf"line {len(records) + 2}, cannot .* no picture 99"):
        opened(colors, pictures=False)


def test_a_second_writer_is_told_who_has_the_project_and_readers_may_look(session, colors):
    teach(session)
    session.set_address("http://127.0.0.1:8123/")
    with pytest.raises(DataError, match=rf"process {os.getpid()} on .*, at http://127.0.0.1:8123/"):
        LabelingSession.open(colors.out, cache=False)
    with LabelingSession.open(colors.out, read_only=True, cache=False) as reader:
        assert reader.wait(60)
        assert said(reader) == said(session)
        with pytest.raises(DataError, match="opened for reading"):
            reader.label([3], "red")
    session.close()
    with opened(colors, pictures=False) as again:
        assert not again.notices


def test_pictures_added_changed_and_gone_are_noticed(colors):
    with opened(colors) as session:
        teach(session)
        before = {one.name: one for one in session.pictures(limit=100).pictures}
    picture(colors.pictures / "red" / "new.png", COLORS["red"], 900)
    picture(colors.pictures / "blue" / "5.png", COLORS["red"], 901)
    os.utime(colors.pictures / "blue" / "5.png", (1, 1))
    (colors.pictures / "green" / "7.png").unlink()
    (colors.pictures / "red" / "bad.png").write_bytes(b"not a picture")
    with opened(colors, pictures=False) as session:
        assert session.notices == (
            "2 pictures were added",
            "1 picture has changed",
            "1 picture is gone",
        )
        rows = {one.name: one for one in session.pictures(limit=100).pictures}
        assert {name: rows[name].id for name in before} == {
            name: one.id for name, one in before.items()
        }
        assert rows["red/new.png"].label == "red"
        assert rows["blue/5.png"].label == "red"
        assert rows["blue/5.png"].version != before["blue/5.png"].version
        assert rows["green/7.png"].error == "the file is gone"
        assert "not a picture" in rows["red/bad.png"].error
        assert session.state().unreadable == 2
        with pytest.raises(DataError, match="cannot be read"):
            session.picture(rows["red/bad.png"].id)
        assert "green/7.png" not in [
            os.path.relpath(one.path, colors.pictures) for one in session.predictions
        ]


def test_the_pictures_are_never_touched(colors):
    before = colors.tree()
    with opened(colors, examples=colors.examples) as session:
        session.accept([one.id for one in session.pictures(label="red").pictures])
        session.export("folders")
    after = {name: one for name, one in colors.tree().items() if not name.startswith("out")}
    assert after == before


def test_examples_are_labeled_in_one_act_and_once(colors):
    with opened(colors, examples=colors.examples) as session:
        assert session.state().undo == 1
        assert [(one.name, one.examples) for one in session.state().classes] == [
            ("blue", 3),
            ("green", 3),
            ("red", 3),
        ]
        session.unlabel(
            [one.id for one in session.pictures(label="red", status="example").pictures]
        )
        before = said(session)
    with opened(colors, examples=colors.examples) as session:
        assert said(session) == before
        assert session.state().pictures == 33


def test_the_same_act_id_is_one_act_also_after_opening_again(colors):
    with opened(colors) as session:
        ids = numbers(session)
        session.label([ids[BLUE]], "blue")
        first = session.label([ids[RED]], "red", act_id="a1")
        again = session.label([ids[RED]], "red", act_id="a1")
        assert (again.act, again.changed, again.ids) == (first.act, first.changed, first.ids)
    with opened(colors, pictures=False) as session:
        revision = session.state().revision
        once_more = session.label([ids[RED]], "red", act_id="a1")
        assert (once_more.act, once_more.changed) == (first.act, first.changed)
        assert session.state().revision == revision


def test_the_same_act_id_twice_at_the_same_time_is_published_once(session, monkeypatch):
    both, act, events = threading.Barrier(2), session._engine.act, []

    def act_together(*given, **options):
        with suppress(threading.BrokenBarrierError):  # if the other one waits for the lock
            both.wait(0.5)
        return act(*given, **options)

    monkeypatch.setattr(session._engine, "act", act_together)
    session.subscribe(events.append)
    label = partial(session.label, [1], "a", act_id="a1")
    threads = [threading.Thread(target=label) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [event.kind for event in events if event.kind == "change"] == ["change"]
    assert session.state().undo == 1


def test_a_picture_labeled_by_somebody_else_is_a_conflict(session):
    seen = session.state().revision
    session.label([1], "a")
    with pytest.raises(ConflictError, match="picture 1 was labeled by somebody else"):
        session.label([1, 2], "b", revision=seen)
    assert session.label([2], "b", revision=seen).ids == (2,)
    assert session.label([1], "b", revision=session.state().revision).ids == (1,)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.label([99], "a"), NotFoundError, "no picture 99"),
        (lambda s: s.label(3, "a"), OptionError, "3 is no list of pictures"),
        (lambda s: s.label([1], "a", act_id=5), OptionError, "act_id is 5; it must be text"),
        (lambda s: s.label([1], "a", act_id="\ud800"), OptionError, "cannot be written"),
        (lambda s: s.label([1], "a", revision="x"), OptionError, "revision is 'x'"),
        (lambda s: s.suggest(-1), OptionError, "n is -1"),
        (lambda s: s.groups("a"), OptionError, "n is 'a'"),
        (lambda s: s.label([0], "a/b"), OptionError, "it contains /"),
        (lambda s: s.label([0], "A"), ConflictError, "differs in upper and lower case only"),
        (lambda s: s.add_class("a"), ConflictError, "there is a class 'a' already"),
        (lambda s: s.rename_class("x", "y"), NotFoundError, "unknown class 'x'"),
        (lambda s: s.set_key("a", "k"), OptionError, "must be a digit"),
        (lambda s: s.accept([1]), OptionError, "has no proposed label"),
        (lambda s: s.redo(), OptionError, "nothing to redo"),
        (lambda s: s.pictures(order="size"), OptionError, "unknown order 'size'"),
        (lambda s: s.pictures(status=["done"]), OptionError, "unknown status 'done'"),
        (lambda s: s.pictures(label="x"), NotFoundError, "unknown class 'x'"),
        (lambda s: s.pictures(act=77), NotFoundError, "act 77"),
        (lambda s: s.pictures(limit=-1), OptionError, "limit is -1"),
        (lambda s: s.pictures(ids=[0, 99]), NotFoundError, "no picture 99"),
        (lambda s: s.similar(99), NotFoundError, "no picture 99"),
        (lambda s: s.group(5), NotFoundError, "no group 5"),
        (lambda s: s.thumbnail(99), NotFoundError, "no picture 99"),
        (lambda s: s.audit(0), OptionError, "n is 0"),
        (lambda s: s.answer_audit(7, []), NotFoundError, "no audit 7"),
        (lambda s: s.export("docx"), OptionError, "unknown export format"),
        (lambda s: s.export("csv", include="some"), OptionError, "include"),
        (lambda s: s.export("csv", include="from"), OptionError, "needs min_probability"),
    ],
)
def test_mistakes_are_one_sentence_and_change_nothing(session, call, error, message):
    session.label([0], "a")
    before = session.state()
    with pytest.raises(error, match=message):
        call(session)
    assert session.state() == before


def test_lists_are_filtered_ordered_and_cut(session):
    teach(session)
    assert session.wait(60)
    by_name = session.pictures(order="name", limit=3)
    assert (by_name.total, [one.name for one in by_name.pictures]) == (
        24,
        ["blue/0.png", "blue/1.png", "blue/2.png"],
    )
    sure = [one.probability for one in session.pictures(order="sure", limit=100).pictures]
    unsure = [one.probability for one in session.pictures(order="unsure", limit=100).pictures]
    assert sure == sorted(sure, reverse=True)
    assert unsure == sorted(sure)
    useful = session.pictures(order="useful", limit=100).pictures
    assert {one.status for one in useful[-3:]} == {"example"}
    assert session.pictures(search="RED/").total == 8
    assert session.picture_ids(label="red", order="name").ids == tuple(
        one.id for one in session.pictures(label="red", order="name", limit=99).pictures
    )
    nearest = session.similar(numbers(session)["red/3.png"], 7).pictures
    assert {one.name.split("/")[0] for one in nearest} == {"red"}
    examples = session.similar(numbers(session)["red/3.png"], 7, status=["example"]).pictures
    assert [one.name for one in examples][:1] == [RED]
    one = session.pictures(ids=[numbers(session)["red/3.png"]]).pictures[0]
    assert one.top[0][0] == one.label == "red"
    assert one.runner_up == one.top[1][0]
    assert (one.width, one.height) == (40, 36)
    assert json.loads(json.dumps(one.json()))["top"][0]["label"] == "red"


def test_suggestions_find_a_class_without_examples(colors):
    for number in range(6):
        picture(colors.pictures / "other" / f"{number}.png", OTHER, 500 + number)
    with opened(colors) as session:
        ids = numbers(session)
        for name in ("blue", "red"):
            session.label([ids[f"{name}/{number}.png"] for number in range(4)], name)
        assert session.wait(60)
        found = {one.name.split("/")[0] for one in session.suggest(6).pictures}
        assert found & {"other", "green"}
        everything = [one.id for one in session.suggest(100).pictures]
        assert len(everything) == len(set(everything)) == 22


def test_thumbnails_are_webp_of_the_whole_picture(session):
    data = session.thumbnail(0)
    assert data[:4] == b"RIFF"
    assert session.picture(0)[1] == "image/png"


def test_unknown_can_be_said_and_unsure_put_aside(session):
    teach(session)
    ids = numbers(session)
    result = session.mark_unknown([ids["red/5.png"]])
    assert result.state.unknown >= 1
    row = session.pictures(ids=[ids["red/5.png"]]).pictures[0]
    assert (row.label, row.status) == (None, "unknown")
    session.mark_unsure([ids["red/6.png"]])
    row = session.pictures(ids=[ids["red/6.png"]]).pictures[0]
    assert (row.label, row.status) == ("red", "unsure")
    session.unlabel([ids["red/5.png"], ids["red/6.png"]])
    assert session.pictures(ids=[ids["red/5.png"]]).pictures[0].label == "red"


def test_what_is_said_to_be_unknown_makes_pictures_like_it_unknown(colors):
    colors.add_pink()

    def scores(session, names):
        ids = numbers(session)
        rows = session.pictures(ids=[ids[name] for name in names], limit=100).pictures
        return np.array([one.ood for one in rows]), {one.status for one in rows}

    taught, pink = ([f"pink/p{n}.png" for n in some] for some in (range(3), range(3, 8)))
    red = [f"red/{number}.png" for number in range(8)]
    with opened(colors, examples=colors.examples) as session:
        before, _ = scores(session, pink)
        session.mark_unknown([numbers(session)[name] for name in taught])
        assert session.wait(60)
        after, _ = scores(session, pink)
        assert (after > before).all()
        assert after.min() > max(before.max(), scores(session, red)[0].max())
        session.undo()
        assert session.wait(60)
        assert np.array_equal(scores(session, pink)[0], before)
        session.redo()
    between = Thresholds(unknown=1 - (before.max() + after.min()) / 2)
    with opened(colors, pictures=False, thresholds=between) as session:
        assert scores(session, pink)[1] == {"unknown"}
        session.undo()
        assert session.wait(60)
        assert scores(session, pink)[1] == {"proposed"}


def test_groups_are_of_what_fits_no_class(colors):
    for number in range(6):
        picture(colors.pictures / "other" / f"{number}.png", OTHER, 500 + number)
    with opened(colors, examples=colors.examples) as session:
        ids = numbers(session)
        others = {ids[f"other/{number}.png"] for number in range(6)}
        session.mark_unknown(sorted(others))
        groups = session.groups()
        assert set(groups.groups[0].ids) <= others
        assert len(groups.groups[0].ids) >= 3
        assert session.group(groups.groups[0].id) == groups.groups[0].ids
        made = session.add_class("yellow", groups.groups[0].ids)
        assert made.state.classes[-1].examples == len(groups.groups[0].ids)


def test_an_audit_estimates_and_its_corrections_apply_at_finish(session):
    teach(session)
    assert session.wait(60)
    audit = session.audit(12)
    assert session.audit(12).audit == audit.audit  # nothing happened: the same sample
    assert audit.population == 24 - session.state().unsure - session.state().unknown
    wrong, *right = audit.pictures
    before = said(session)
    part = session.answer_audit(audit.audit, [{"id": one.id, "right": True} for one in right[:4]])
    assert (part.checked, part.right, part.accuracy) == (4, 4, 1.0)
    assert part.low == pytest.approx(0.025 ** (1 / 4))
    answers = [{"id": one.id, "right": True} for one in right]
    done = session.answer_audit(
        audit.audit, [*answers, {"id": wrong.id, "right": False, "label": "odd"}], finish=True
    )
    assert (done.checked, done.right) == (len(audit.pictures), len(right))
    assert said(session) != before
    assert session.pictures(ids=[wrong.id]).pictures[0].label == "odd"
    assert done.json()["act"] == done.act.act
    with pytest.raises(OptionError, match="is finished"):
        session.answer_audit(audit.audit, answers)
    session.undo()
    assert said(session) == before


def test_a_larger_audit_extends_the_sample_and_keeps_its_answers(session):
    teach(session)
    assert session.wait(60)
    first = session.audit(6)
    answers = [{"id": first.pictures[0].id, "right": False, "label": "odd"}]
    session.answer_audit(first.audit, answers)
    larger = session.audit(10)
    assert (larger.audit, larger.population) == (first.audit, first.population)
    assert [one.id for one in larger.pictures[:6]] == [one.id for one in first.pictures]
    assert len({one.id for one in larger.pictures}) == 10
    assert [one["id"] for one in larger.answers] == [first.pictures[0].id]
    assert (larger.estimate.checked, larger.estimate.right) == (1, 0)
    again = session.audit(6)  # answered in part: it goes on
    assert [one.id for one in again.pictures] == [one.id for one in larger.pictures]
    assert len(session.audit(1000).pictures) == first.population
    session.answer_audit(first.audit, [{"id": larger.pictures[9].id, "right": True}])
    session.label([larger.pictures[9].id], "odd")  # the labels are not the same any more
    assert session.audit(6).audit != first.audit


def test_an_extended_audit_survives_opening_again(colors):
    with opened(colors, examples=colors.examples) as session:
        session.audit(4)
        extended = session.audit(12).pictures
    with opened(colors, pictures=False) as session:
        assert session.audit(12).pictures == extended
        session.undo()
        session.redo()
        new = session.audit(12)
        assert [one.id for one in new.pictures] != [one.id for one in extended]


def test_answers_to_an_audit_survive_opening_again(colors):
    with opened(colors, examples=colors.examples) as session:
        audit = session.audit(5)
        session.answer_audit(audit.audit, [{"id": audit.pictures[0].id, "right": True}])
    with opened(colors, pictures=False) as session:
        more = session.answer_audit(audit.audit, [{"id": audit.pictures[1].id, "right": False}])
        assert (more.checked, more.right) == (2, 1)


def test_events_tell_what_changed(session):
    events = []
    stop = session.subscribe(events.append)
    revision = session.state().revision
    teach(session)
    assert session.wait(60)
    changes = [one for one in events if one.kind == "change"]
    assert [one.data["act"] for one in changes] == [one.revision for one in changes]
    assert len(changes[1].data["changed"]) == 22
    assert events[-1].kind == "probabilities"
    assert [one for one in session.events_since(revision) if one.kind == "change"] == changes
    assert session.events_since(session.state().revision) == []
    assert session.events_since(-5) is None
    assert session.events_since(10**6) is None
    stop()
    count = len(events)
    session.undo()
    assert len(events) == count


def test_who_waits_finds_all_events_delivered(session):
    events = []

    def slow(event):
        time.sleep(0.1)
        events.append(event)

    session.subscribe(slow)
    teach(session)
    assert session.wait(60)
    assert events[-1].kind == "probabilities"


def test_probabilities_of_many_pictures_come_before_their_ood_scores(session, monkeypatch):
    teach(session)
    assert session.wait(60)
    at_once = session.pictures(order="name", limit=100).pictures
    monkeypatch.setattr(answers, "_MANY", 0)
    session.unlabel([numbers(session)[RED]])
    assert session.wait(60)
    events = []
    session.subscribe(lambda event: events.append((event.kind, session._engine.answers.calibrated)))
    session.label([numbers(session)[RED]], "red")
    assert session.wait(60)
    assert [done for kind, done in events if kind == "probabilities"] == [False, True]
    after = session.pictures(order="name", limit=100).pictures
    assert [replace(one, was=None) for one in after] == [replace(one, was=None) for one in at_once]


def test_progress_ends_when_the_last_picture_has_joined(colors, monkeypatch):
    proceed, join = threading.Event(), Engine._join

    def join_later(engine, count):
        proceed.wait(30)
        join(engine, count)

    monkeypatch.setattr(Engine, "_join", join_later)
    session = LabelingSession.open(colors.out, colors.pictures, source=colors.weights, cache=False)
    with session:
        events = []
        session.subscribe(lambda one: events.append(one.data) if one.kind == "progress" else None)
        assert session._engine.embedding_done.wait(30)
        progress = session.state().progress
        assert (progress["done"], progress["total"]) == (24, 24)
        assert not session.pictures(label=None).pictures[0].top
        proceed.set()
        assert session.wait(60)
        assert session.state().progress is None
        assert session.similar(0).total == 23
    assert events[-1] is None


def test_answers_are_computed_again_after_an_error_of_the_disk(colors, monkeypatch):
    blocks, trials = PictureStore.blocks, []

    def fails_once(store, count):
        trials.append(count)
        if len(trials) == 1:
            raise DataError("cannot read features.f32: Input/output error.")
        return blocks(store, count)

    monkeypatch.setattr(PictureStore, "blocks", fails_once)
    monkeypatch.setattr(engine, "_SECONDS_BETWEEN_TRIALS", 0.5)
    session = LabelingSession.open(colors.out, colors.pictures, source=colors.weights, cache=False)
    with session:
        while not session.notices:
            time.sleep(0.01)
        problem = "answers are late, and are computed again: cannot read features.f32"
        assert session.notices[0].startswith(problem)
        assert session.wait(60)
        assert len(trials) == 2
        assert session.notices == ()
        teach(session)
        assert all(labels(session).values())


def test_labels_of_pictures_without_features_are_exported(colors):
    with opened(colors) as session:
        teach(session)
    (colors.out / "rows.npz").unlink()
    shutil.rmtree(colors.out / "features")
    table = colors.root / "e.csv"
    assert main(["export", str(colors.out), "--format", "csv", "--out", str(table)]) == 0
    with LabelingSession.open(colors.out, read_only=True, cache=False) as session:
        predictions = session.predictions
    assert [one.label for one in predictions] == ["blue", "green", "red"]
    assert predictions.contents == ("", "", "")
    assert table.read_text().count(",example\n") == 3


def test_a_notebook_shows_a_table_with_everything_escaped(session):
    session.label([0], "R&D")
    html = session._repr_html_()
    assert "R&amp;D" in html
    assert "data:image/webp;base64," in html
    assert "LabelingSession(" in repr(session)


def test_nothing_is_expected_before_the_first_calibration(session, monkeypatch):
    calibrated = threading.Event()

    def later(*arguments):
        calibrated.wait(60)
        yield from calibrate(*arguments)

    monkeypatch.setattr(engine, "calibrate", later)
    teach(session)
    assert session.expected_accuracy is None
    calibrated.set()
    assert session.wait(60)
    assert session.expected_accuracy is not None
    teach(session)  # those of the labels before hold until the new ones are known
    assert session.expected_accuracy is not None


def test_expected_accuracy_has_an_interval_that_narrows(session):
    teach(session)
    assert session.wait(60)
    first = session.expected_accuracy
    assert 0 <= first.low < first.value <= first.high <= 1
    session.accept([one.id for one in session.pictures(status="proposed", limit=100).pictures])
    assert session.wait(60)
    last = session.expected_accuracy
    assert last.high - last.low < first.high - first.low


def test_threads_may_act_at_the_same_time(session):
    failed = []

    def act(start):
        try:
            for number in range(start, start + 6):
                session.label([number], "ab"[number % 2])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=act, args=(6 * one,)) for one in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert said(session)[0] == {n: ("ab"[n % 2], "example") for n in range(18)}
    assert session.state().undo == 18


def test_a_project_needs_pictures_and_an_empty_folder(tmp_path, colors):
    with pytest.raises(DataError, match="is not a labeling project"):
        LabelingSession.open(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="there is no picture in"):
        LabelingSession.open(tmp_path / "p", tmp_path / "empty", cache=False)
    with pytest.raises(DataError, match="is not empty"):
        LabelingSession.open(colors.examples, colors.pictures, cache=False)
    with pytest.raises(DataError, match="no file or folder"):
        LabelingSession.open(tmp_path / "p", tmp_path / "missing", cache=False)
    assert not (tmp_path / "p").exists()


def test_a_project_of_a_newer_version_is_refused(colors):
    opened(colors).close()
    path = colors.out / "project.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 7'))
    with pytest.raises(DataError, match="project of a newer protorect .its version is 7"):
        LabelingSession.open(colors.out)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("label"), st.integers(0, 23), st.sampled_from(["blue", "red", "green"])),
        st.tuples(st.just("accept"), st.integers(0, 23)),
        st.tuples(st.just("unlabel"), st.integers(0, 23)),
        st.tuples(st.just("mark_unknown"), st.integers(0, 23)),
        st.tuples(st.just("remove_class"), st.sampled_from(["blue", "red"])),
        st.tuples(st.just("undo")),
        st.tuples(st.just("redo")),
        st.tuples(st.just("reopen")),
    ),
    max_size=12,
)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps)
def test_any_sequence_of_acts_is_what_its_journal_says(tmp_path_factory, color_weights, sequence):
    """The session after any acts equals one that replays the journal from scratch."""
    colors = ColoredPictures(tmp_path_factory.mktemp("any"), color_weights)
    session = opened(colors)
    try:
        for kind, *values in sequence:
            if kind == "reopen":
                session.close()
                session = opened(colors, pictures=False)
                continue
            arguments = [[one] if isinstance(one, int) else one for one in values]
            with suppress(OptionError, NotFoundError):
                getattr(session, kind)(*arguments)
        assert session.wait(60)
        before, rows = said(session), session.pictures(order="name", limit=99).pictures
        undo = session.state().undo, session.state().redo
        session.close()
        (colors.out / "rows.npz").unlink(missing_ok=True)
        (colors.out / "changes.jsonl").unlink(missing_ok=True)
        session = opened(colors, pictures=False)
        assert said(session) == before
        assert (session.state().undo, session.state().redo) == undo
        again = session.pictures(order="name", limit=99).pictures
        assert [(one.label, one.status, one.top) for one in again] == [
            (one.label, one.status, one.top) for one in rows
        ]
    finally:
        session.close()


def test_a_project_whose_creation_was_killed_is_made_again(colors):
    with opened(colors):
        pass
    (colors.out / "project.json").unlink()  # which is written last
    journal = colors.out / "journal.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    for name in ("rows.npz", "changes.jsonl"):
        (colors.out / name).unlink(missing_ok=True)
    shutil.rmtree(colors.out / "features")
    (colors.out / ".protorect-new-abcd1234.json").touch()
    with opened(colors) as session:
        assert session.state().pictures == 24
    assert not list(colors.out.glob(".protorect-new*"))


def test_labels_without_settings_are_not_thrown_away(colors):
    with opened(colors) as session:
        session.label([0], "blue")
    (colors.out / "project.json").unlink()
    with pytest.raises(DataError, match="exists and is not empty"):
        opened(colors)
    assert '"blue"' in (colors.out / "journal.jsonl").read_text()
