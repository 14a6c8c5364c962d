"""Acts on labels, against a model that copies the whole state."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from helpers.labeling import UNKNOWN, UNSURE, Model
from protorect import ConflictError, NotFoundError, OptionError
from protorect.labeling.acts import SAID_UNKNOWN, SAID_UNSURE, LabelState

PICTURES = 8
NAMES = ("ant", "bee", "cow", "dog")
ids = st.lists(st.integers(0, PICTURES - 1), min_size=1, max_size=4, unique=True)
names = st.sampled_from(NAMES)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("label"), ids, st.sampled_from([*NAMES, None, UNKNOWN, UNSURE])),
        st.tuples(st.just("accept"), ids, names),
        st.tuples(st.just("add_class"), names, ids, st.sampled_from([None, "3", "1"])),
        st.tuples(st.just("rename_class"), names, st.sampled_from(["elk", "fox", *NAMES])),
        st.tuples(st.just("merge_classes"), names, names),
        st.tuples(st.just("set_key"), names, st.sampled_from([None, "1", "2", "9"])),
        st.tuples(st.just("move_class"), names, st.integers(0, 3)),
        st.tuples(st.just("remove_class"), names),
        st.tuples(st.just("undo")),
        st.tuples(st.just("redo")),
    ),
    max_size=25,
)


def record(step):
    """The act of a step, as the journal has it."""
    kind, *values = step
    if kind in ("label", "accept"):
        return {"kind": kind, "labels": [[values[1], values[0]]]}
    fields = {
        "add_class": ("name", "ids", "key"),
        "rename_class": ("name", "new"),
        "merge_classes": ("name", "into"),
        "set_key": ("name", "key"),
        "move_class": ("name", "position"),
        "remove_class": ("name",),
    }
    return {"kind": kind, **dict(zip(fields.get(kind, ()), values, strict=True))}


def shown(state):
    """The state in the words of the model."""
    by_number = {one.number: one.name for one in state.classes}
    labels = {}
    for picture, (number, accepted) in enumerate(
        zip(state.label.tolist(), state.accepted.tolist(), strict=True)
    ):
        if number >= 0:
            labels[picture] = (by_number[number], accepted)
        elif number in (SAID_UNKNOWN, SAID_UNSURE):
            labels[picture] = UNKNOWN if number == SAID_UNKNOWN else UNSURE
    return [[one.name, one.key] for one in state.classes], labels


def allowed(model, step):
    """Whether a step can be done in the state of the model."""
    kind, *values = step
    present = [name for name, _ in model.classes]
    if kind in ("undo", "redo"):
        return bool(model.past if kind == "undo" else model.future)
    if kind in ("label",):
        return True
    if kind == "accept":
        return values[1] in present
    if kind == "add_class":
        return values[0] not in present
    if values[0] not in present:
        return False
    if kind == "rename_class":
        return values[1] == values[0] or values[1] not in present
    if kind == "merge_classes":
        return values[1] in present and values[1] != values[0]
    return kind != "move_class" or values[1] < len(present)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_any_sequence_of_acts_is_that_of_the_model(sequence):
    state, model, done = LabelState(PICTURES), Model(), []
    for step in sequence:
        if allowed(model, step):
            kind, *values = step
            if kind == "accept":
                model.accept([(one, values[1]) for one in values[0]])
            else:
                getattr(model, kind)(*values)
            done.append(record(step))
            state.apply(state.plan(done[-1]), len(done))
        elif step[0] != "accept":
            before = shown(state)
            with pytest.raises((OptionError, NotFoundError, ConflictError)):
                state.plan(record(step))
            assert shown(state) == before
        assert shown(state) == model.state()
        assert (len(state.undo), len(state.redo)) == (len(model.past), len(model.future))
    again = LabelState(PICTURES)
    for number, act in enumerate(done, 1):
        again.apply(again.plan(act), number)
    assert shown(again) == shown(state)
    assert np.array_equal(again.touched, state.touched)


@pytest.mark.parametrize("wrong", [-1, PICTURES, 10**9])
def test_an_unknown_picture_is_named(wrong):
    with pytest.raises(NotFoundError, match=rf"there is no picture {wrong}; .* 0 to 7"):
        LabelState(PICTURES).checked_ids([0, wrong])


@pytest.mark.parametrize("wrong", ["1", 1.0, True, None])
def test_a_picture_is_a_number(wrong):
    with pytest.raises(OptionError, match="is no picture"):
        LabelState(PICTURES).checked_ids([wrong])


def test_the_same_picture_twice_counts_once_but_not_with_two_labels():
    state = LabelState(PICTURES)
    patch = state.plan({"kind": "label", "labels": [["ant", [3, 3, 1]]]})
    assert patch.ids.tolist() == [3, 1]
    with pytest.raises(OptionError, match="two labels in one act"):
        state.plan({"kind": "label", "labels": [["ant", [3]], ["bee", [3]]]})


def with_classes(count):
    state = LabelState(PICTURES)
    for number in range(count):
        act = {"kind": "add_class", "name": f"class {number}", "ids": [], "key": None}
        state.apply(state.plan(act), number + 1)
    return state


def test_a_class_takes_the_key_of_another():
    state = with_classes(3)
    state.apply(state.plan({"kind": "set_key", "name": "class 0", "key": "2"}), 4)
    assert [one.key for one in state.classes] == ["2", None, "3"]
    state.apply(state.plan({"kind": "set_key", "name": "class 2", "key": None}), 5)
    assert [one.key for one in state.classes] == ["2", None, None]


@pytest.mark.parametrize("key", ["12", "x", "", 1, ["1"]])
def test_a_key_is_one_digit(key):
    state = with_classes(1)
    with pytest.raises(OptionError, match="it must be a digit"):
        state.plan({"kind": "set_key", "name": "class 0", "key": key})


def test_an_eleventh_class_has_no_key_and_keys_never_move():
    state = LabelState(PICTURES)
    for number in range(11):
        state.apply(state.plan({"kind": "add_class", "name": f"c{number}"}), number + 1)
    assert [one.key for one in state.classes] == [*"1234567890", None]
    state.apply(state.plan({"kind": "remove_class", "name": "c0"}), 12)
    assert [one.key for one in state.classes] == [*"234567890", None]
