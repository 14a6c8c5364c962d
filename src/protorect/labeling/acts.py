"""The labels that people gave, and how acts change them: pure state, no files and no features.

An act is a JSON object, one line of the journal. `LabelState.plan` checks it against the present
state and says what it changes; `LabelState.apply` carries that out. Whatever an act changes is kept
with its previous value, so that any number of acts can be undone.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect.errors import NotFoundError, OptionError, unknown_name
from protorect.labeling.class_names import check_is_new, checked_class_name
from protorect.labeling.prediction import UNKNOWN, UNSURE

NO_LABEL, SAID_UNKNOWN, SAID_UNSURE = -1, -2, -3
_SPECIAL: dict[str | None, int] = {None: NO_LABEL, UNKNOWN: SAID_UNKNOWN, UNSURE: SAID_UNSURE}
KEYS = "1234567890"
Act = dict[str, Any]
Ids = NDArray[np.int64]
_WHOLE = (int, np.integer)


@dataclass(frozen=True)
class LabelClass:
    """A class of the project."""

    number: int  # never used again, so that labels stay valid when the class is renamed or moved
    name: str
    key: str | None  # the digit that chooses it


Classes = tuple[LabelClass, ...]


@dataclass(frozen=True, eq=False)
class Patch:
    """What one act changes, with the values before and after it."""

    kind: str
    ids: Ids
    before: tuple[NDArray[np.int32], NDArray[np.bool_]]  # label and accepted of each id
    after: tuple[NDArray[np.int32], NDArray[np.bool_]]
    classes_before: Classes
    classes_after: Classes
    label: str | None = None  # the class that the act is about

    def reversed(self) -> "Patch":
        """The patch that restores the state before."""
        return replace(
            self,
            before=self.after,
            after=self.before,
            classes_before=self.classes_after,
            classes_after=self.classes_before,
        )


@dataclass
class LabelState:
    """Classes, and what a person said of each picture."""

    pictures: int
    classes: Classes = ()
    label: NDArray[np.int32] = field(init=False)  # (pictures,) number of a class, or negative
    accepted: NDArray[np.bool_] = field(init=False)  # the label was proposed, and accepted
    touched: NDArray[np.int64] = field(init=False)  # revision of the last act on a picture
    numbers: int = 0  # how many numbers of classes are used, those of removed classes included
    undo: list[Patch] = field(default_factory=list)
    redo: list[Patch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.label = np.full(self.pictures, NO_LABEL, np.int32)
        self.accepted = np.zeros(self.pictures, bool)
        self.touched = np.zeros(self.pictures, np.int64)

    @property
    def names(self) -> list[str]:
        """The names of the classes, in their order."""
        return [one.name for one in self.classes]

    def find(self, name: object) -> LabelClass:
        """The class of this name; NotFoundError if there is none."""
        for one in self.classes:
            if one.name == name:
                return one
        raise NotFoundError(str(unknown_name("class", str(name)[:100], self.names or ["none yet"])))

    def checked_ids(self, ids: Iterable[Any]) -> Ids:
        """The ids without repetitions, in their order; NotFoundError for an unknown one."""
        return np.fromiter(dict.fromkeys(self.known(ids)), np.int64)

    def known(self, ids: Iterable[Any]) -> list[int]:
        """The ids as they are given; NotFoundError for an unknown one."""
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise OptionError(f"{ids!r} is no list of pictures; give a list of their numbers.")
        given = list(ids)
        for one in given:
            if not isinstance(one, _WHOLE) or isinstance(one, bool):
                raise OptionError(f"{one!r} is no picture; pictures are given by their numbers.")
            if not 0 <= one < self.pictures:
                raise NotFoundError(
                    f"there is no picture {one}; the project has the pictures 0 to "
                    f"{self.pictures - 1}."
                )
        return given

    def plan(self, act: Act) -> Patch:
        """What an act would change; an error if it cannot be done. Nothing is changed yet."""
        return ACTS[act["kind"]](self, act)

    def apply(self, patch: Patch, revision: int) -> None:
        """Carry out a planned act."""
        if patch.kind == "undo":
            self.redo.append(self.undo.pop())
        elif patch.kind == "redo":
            self.undo.append(self.redo.pop())
        else:
            self.undo.append(patch)
            self.redo.clear()
        self.label[patch.ids], self.accepted[patch.ids] = patch.after
        self.touched[patch.ids] = revision
        if patch.classes_after is not self.classes:
            self.classes = patch.classes_after
            self.numbers = max(self.numbers, *(one.number + 1 for one in self.classes), 0)

    def patch(
        self,
        act: Act,
        ids: Ids,
        label: NDArray[np.int32],
        accepted: NDArray[np.bool_],
        classes: Classes,
        name: str | None,
    ) -> Patch:
        """A patch from the present state to new values of some pictures."""
        before = self.label[ids], self.accepted[ids]
        after = label.astype(np.int32), accepted
        return Patch(act["kind"], ids, before, after, self.classes, classes, name)


def with_class(classes: Classes, name: str, number: int, key: str | None = None) -> Classes:
    """The classes and a new one; without a key it gets the next free digit."""
    taken = {one.key for one in classes}
    free = next((digit for digit in KEYS if digit not in taken), None)
    new = LabelClass(number, name, free if key is None else key)
    return (*(_without_key(one, key) for one in classes), new)


def _without_key(one: LabelClass, key: str | None) -> LabelClass:
    """The class, without its key if that is this digit."""
    return replace(one, key=None) if key is not None and one.key == key else one


def checked_key(key: Any) -> str | None:
    """The key; OptionError if it is no digit."""
    if key is not None and (not isinstance(key, str) or len(key) != 1 or key not in KEYS):
        raise OptionError(f"the key is {key!r}; it must be a digit, '0' to '9', or None.")
    return key


def _assign(state: LabelState, act: Act) -> Patch:
    """Labels of pictures: `labels` has pairs of a name and its ids; new names make classes."""
    classes, numbers = state.classes, itertools.count(state.numbers)
    assigned: dict[int, int] = {}  # class number of each picture
    known = _SPECIAL | {one.name: one.number for one in classes}
    for name, given in act["labels"]:
        if name not in known:
            name = checked_class_name(name)
        if name not in known:
            check_is_new(name, [one.name for one in classes])
            known[name] = next(numbers)
            classes = with_class(classes, name, known[name])
        for one in state.known(given):
            if assigned.setdefault(one, known[name]) != known[name]:
                raise OptionError(
                    "a picture is given two labels in one act; give each picture once."
                )
    ids = np.fromiter(assigned, np.int64)
    label = np.fromiter(assigned.values(), np.int32)
    accepted = np.full(len(ids), act["kind"] == "accept")
    names = [name for name, _ in act["labels"]]
    return state.patch(act, ids, label, accepted, classes, names[0] if len(names) == 1 else None)


def _add_class(state: LabelState, act: Act) -> Patch:
    name = checked_class_name(act["name"])
    check_is_new(name, state.names)
    number = state.numbers
    classes = with_class(state.classes, name, number, checked_key(act.get("key")))
    ids = state.checked_ids(act.get("ids", ()))
    labels = np.full(len(ids), number, np.int32)
    return state.patch(act, ids, labels, np.zeros(len(ids), bool), classes, name)


def _rename_class(state: LabelState, act: Act) -> Patch:
    old, new = state.find(act["name"]), checked_class_name(act["new"])
    check_is_new(new, [name for name in state.names if name != old.name])
    return _with_classes(
        state, act, [replace(o, name=new) if o is old else o for o in state.classes]
    )


def _set_key(state: LabelState, act: Act) -> Patch:
    chosen, key = state.find(act["name"]), checked_key(act["key"])
    classes = [
        replace(one, key=key) if one is chosen else _without_key(one, key) for one in state.classes
    ]
    return _with_classes(state, act, classes)


def _move_class(state: LabelState, act: Act) -> Patch:
    chosen, position = state.find(act["name"]), act["position"]
    if type(position) is not int or not 0 <= position < len(state.classes):
        raise OptionError(
            f"the position is {position!r}; it must be a whole number in "
            f"0 .. {len(state.classes) - 1}."
        )
    classes = [one for one in state.classes if one is not chosen]
    classes.insert(position, chosen)
    return _with_classes(state, act, classes)


def _merge_classes(state: LabelState, act: Act) -> Patch:
    old, into = state.find(act["name"]), state.find(act["into"])
    if old is into:
        raise OptionError(f"the class {old.name!r} cannot be merged into itself.")
    return _without_class(state, act, old, into.number, into.name)


def _remove_class(state: LabelState, act: Act) -> Patch:
    return _without_class(state, act, state.find(act["name"]), NO_LABEL, act["name"])


def _without_class(
    state: LabelState, act: Act, old: LabelClass, number: int, name: str | None
) -> Patch:
    """Remove a class; its pictures get the label `number`."""
    ids = np.flatnonzero(state.label == old.number)
    classes = tuple(one for one in state.classes if one is not old)
    accepted = state.accepted[ids] & (number >= 0)
    return state.patch(act, ids, np.full(len(ids), number, np.int32), accepted, classes, name)


def _with_classes(state: LabelState, act: Act, classes: Sequence[LabelClass]) -> Patch:
    ids = np.empty(0, np.int64)
    return state.patch(
        act, ids, ids.astype(np.int32), ids.astype(bool), tuple(classes), act["name"]
    )


def _undo(state: LabelState, act: Act) -> Patch:
    if not state.undo:
        raise OptionError("there is nothing to undo.")
    return replace(state.undo[-1].reversed(), kind=act["kind"])


def _redo(state: LabelState, act: Act) -> Patch:
    if not state.redo:
        raise OptionError("there is nothing to redo.")
    return replace(state.redo[-1], kind=act["kind"])


ACTS: dict[str, Callable[[LabelState, Act], Patch]] = {
    "label": _assign,
    "accept": _assign,
    "audit": _assign,
    "add_class": _add_class,
    "rename_class": _rename_class,
    "merge_classes": _merge_classes,
    "set_key": _set_key,
    "move_class": _move_class,
    "remove_class": _remove_class,
    "undo": _undo,
    "redo": _redo,
}
