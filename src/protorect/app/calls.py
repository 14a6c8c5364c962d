"""The calls of the HTTP API: what each takes, and the method of the session that answers it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse, Response

from protorect._utils.documents import COUNT
from protorect.errors import OptionError
from protorect.labeling.exports import FORMATS
from protorect.labeling.listing import MOST_IDS, ORDERS
from protorect.labeling.session import LabelingSession

MOST_ROWS = 1000  # rows of one answer
IDS = [COUNT]
STATUSES = ("example", "accepted", "proposed", "unsure", "unknown")
_ACT = {"act_id?": {str, None}, "revision?": {COUNT, None}}


@dataclass(frozen=True)
class Query:
    """One parameter of an address."""

    kind: str  # text, number, numbers, choice or choices
    summary: str
    choices: tuple[str, ...] = ()
    maximum: int = 2**53 - 1
    required: bool = False


@dataclass(frozen=True)
class Call:
    """One call: its place, what it takes, and how the session answers it."""

    method: str
    path: str
    summary: str
    run: Callable[..., Any]  # (session, body or path's number, **parameters of the address)
    query: dict[str, Query] = field(default_factory=dict)
    body: Any = None  # a description as of `_utils.documents`
    media: str = "application/json"

    def answer(self, session: LabelingSession, *given: Any, **parameters: Any) -> Response:
        """The answer of the session as a response."""
        answer = self.run(session, *given, **parameters)
        if isinstance(answer, Response):
            return answer
        return JSONResponse(answer.json() if hasattr(answer, "json") else answer)


# ---- Reading ----

_FILTERS = {
    "class": Query("text", "A class, or _unsure or _unknown; by default all pictures."),
    "status": Query("choices", "Only pictures of these statuses.", STATUSES),
    "order": Query("choice", "The order of the pictures.", ORDERS),
    "search": Query("text", "Only pictures whose file name contains this."),
    "similar": Query("number", "The most similar to this picture first."),
    "act": Query("number", "Only pictures that this act changed."),
}
_PAGE = {
    "offset": Query("number", "How many to leave out at the beginning."),
    "limit": Query("number", "How many to answer at most.", maximum=MOST_ROWS),
}


def _pictures(session: LabelingSession, **given: Any) -> Any:
    page = {name: given.pop(name) for name in ("offset", "limit") if name in given}
    only_ids = given.pop("fields", None) is not None
    given["label"] = given.pop("class", None)
    return session.picture_ids(**given) if only_ids else session.pictures(**page, **given)


def _thumbnail(session: LabelingSession, number: int, v: str = "") -> Response:
    # A version names the content, so its thumbnail never changes.
    cached = "private, max-age=31536000, immutable" if v else "private, no-cache"
    headers = {"Cache-Control": cached}
    return Response(session.thumbnail(number), media_type="image/webp", headers=headers)


def _picture(session: LabelingSession, number: int, v: str = "") -> Response:
    content, media = session.picture(number)
    cached = "private, max-age=86400" if v else "private, no-cache"
    return Response(content, media_type=media, headers={"Cache-Control": cached})


# ---- Acts ----


def _label(session: LabelingSession, body: dict[str, Any]) -> Any:
    act = _act(body)
    ways = [name for name in ("label", "unknown", "unsure", "labels") if name in body]
    if len(ways) != 1:
        raise OptionError("give one of label, unknown, unsure and labels.")
    if "labels" in body:
        return session.label_each(_by_number(body["labels"]), **act)
    if "ids" not in body:
        raise OptionError("ids is missing; give the numbers of the pictures.")
    if "label" in body:
        return session.label(body["ids"], body["label"], **act)
    mark = session.mark_unknown if "unknown" in body else session.mark_unsure
    return mark(body["ids"], **act)


def _by_number(labels: dict[str, str]) -> dict[int, str]:
    wrong = next((name for name in labels if not is_number(name)), None)
    if wrong is not None:
        raise OptionError(f"labels has the key {wrong[:40]!r}; the keys are numbers of pictures.")
    by_number = {int(number): name for number, name in labels.items()}
    if len(by_number) < len(labels):
        raise OptionError("labels has one picture twice, with other digits in front of its number.")
    return by_number


def _change_class(session: LabelingSession, body: dict[str, Any]) -> Any:
    changes: dict[str, Callable[..., Any]] = {
        "rename": session.rename_class,
        "merge_into": session.merge_classes,
        "key": session.set_key,
        "position": session.move_class,
    }
    given = [name for name in changes if name in body]
    if len(given) != 1:
        raise OptionError(f"give one of {', '.join(changes)}.")
    return changes[given[0]](body["name"], body[given[0]], **_act(body))


def _add_class(session: LabelingSession, body: dict[str, Any]) -> Any:
    return session.add_class(body["name"], body.get("ids", ()), body.get("key"), **_act(body))


def _answer_audit(session: LabelingSession, body: dict[str, Any]) -> Any:
    answers, finish = body.get("answers", []), body.get("finish", False)
    return session.answer_audit(body["audit"], answers, finish=finish, **_act(body))


def _export(session: LabelingSession, body: dict[str, Any]) -> Any:
    options = {name: body[name] for name in ("include", "min_probability") if name in body}
    return session.export(body["format"], **options)


def _act(body: dict[str, Any]) -> dict[str, Any]:
    return {"act_id": body.get("act_id"), "revision": body.get("revision")}


_KEY = {str, None}
_ANSWER = {"id": COUNT, "right": bool, "label?": {str, None}, "unknown?": bool}

CALLS: tuple[Call, ...] = (
    Call("GET", "state", "Classes, counts, expected accuracy, progress", LabelingSession.state),
    Call(
        "GET", "pictures", "Pictures with their labels", _pictures,
        {
            **_FILTERS,
            "ids": Query("numbers", f"These pictures, up to {MOST_IDS}.", maximum=MOST_IDS),
            "fields": Query("choice", "Only the numbers, of all pictures.", ("id",)),
            **_PAGE,
        },
    ),
    Call(
        "GET", "thumbnail/{number}", "A small image", _thumbnail, {"v": Query("text", "Version.")},
        media="image/webp",
    ),
    Call(
        "GET", "picture/{number}", "The image", _picture, {"v": Query("text", "Version.")},
        media="image/*",
    ),
    Call(
        "GET", "suggest", "The pictures whose labels would help most", LabelingSession.suggest,
        {"n": Query("number", "How many.", maximum=MOST_ROWS), "offset": _PAGE["offset"]},
    ),
    Call(
        "GET", "groups", "Clusters of what fits no class", LabelingSession.groups,
        {"n": Query("number", "How many at most.", maximum=MOST_ROWS)},
    ),
    Call("GET", "groups/{number}", "One cluster", lambda s, number: {"ids": list(s.group(number))}),
    Call(
        "GET", "audit", "A random sample of the labeled pictures", LabelingSession.audit,
        {"n": Query("number", "Its size.", maximum=MOST_ROWS)},
    ),
    Call(
        "POST", "audit", "Answers of an audit", _answer_audit,
        body={"audit": {str, COUNT}, "answers?": [_ANSWER], "finish?": bool, **_ACT},
    ),
    Call(
        "POST", "label", "Label pictures, or take labels back", _label,
        body={
            "ids?": IDS, "label?": {str, None}, "unknown?": True, "unsure?": True,
            "labels?": {str: str}, **_ACT,
        },
    ),
    Call(
        "POST", "accept", "The proposed labels are right",
        lambda s, body: s.accept(body["ids"], **_act(body)), body={"ids": IDS, **_ACT},
    ),
    Call(
        "POST", "class", "Add a class", _add_class,
        body={"name": str, "ids?": IDS, "key?": _KEY, **_ACT},
    ),
    Call(
        "PATCH", "class", "Rename, merge or change a class", _change_class,
        body={
            "name": str, "rename?": str, "merge_into?": str, "key?": _KEY, "position?": COUNT,
            **_ACT,
        },
    ),
    Call(
        "DELETE", "class", "Remove a class; its pictures lose the label",
        LabelingSession.remove_class,
        {
            "name": Query("text", "The class.", required=True),
            "act_id": Query("text", "An identifier of the caller; sent again, same answer."),
            "revision": Query("number", "The revision that the caller knows."),
        },
    ),
    Call("POST", "undo", "One act back", lambda s, body: s.undo(**_act(body)), body=_ACT),
    Call("POST", "redo", "One act forward", lambda s, body: s.redo(**_act(body)), body=_ACT),
    Call(
        "POST", "export", "Write the labels into the project", _export,
        body={
            "format": {*FORMATS}, "include?": {"all", "checked", "from"},
            "min_probability?": {float, None},
        },
    ),
)  # fmt: skip


def parse_query(given: Iterable[tuple[str, str]], expected: dict[str, Query]) -> dict[str, Any]:
    """The values of an address's parameters; OptionError if one is unknown or not as described."""
    values = dict(given)
    unknown = sorted(set(values) - set(expected) - {"token"})
    if unknown:
        raise OptionError(f"unknown parameter {unknown[0]!r}; known: {', '.join(expected)}.")
    missing = [name for name, one in expected.items() if one.required and not values.get(name)]
    if missing:
        raise OptionError(f"the parameter {missing[0]} is missing or empty.")
    return {
        name: _value(name, values[name], one) for name, one in expected.items() if values.get(name)
    }


def _value(name: str, text: str, one: Query) -> Any:
    if "\0" in text:
        raise OptionError(f"{name} has a zero byte.")
    if one.kind == "text":
        return text
    if one.kind in ("number", "numbers"):
        numbers = [parse_number(name, part) for part in text.split(",")]
        if one.kind == "numbers" and len(numbers) > one.maximum:
            raise OptionError(f"{name} has {len(numbers)} numbers; {one.maximum} are allowed.")
        if one.kind == "number" and (len(numbers) > 1 or numbers[0] > one.maximum):
            raise OptionError(f"{name} is {text}; it must be a number in 0 .. {one.maximum}.")
        return numbers if one.kind == "numbers" else numbers[0]
    words = text.split(",") if one.kind == "choices" else [text]
    wrong = next((word for word in words if word not in one.choices), None)
    if wrong is not None:
        raise OptionError(f"{name} is {wrong[:40]!r}; it must be one of {', '.join(one.choices)}.")
    return words if one.kind == "choices" else words[0]


def parse_number(name: str, text: str) -> int:
    """A whole number from 0 up; OptionError if the text is something else."""
    if not is_number(text):
        raise OptionError(f"{name} is {text[:40]!r}; it must be a whole number from 0 up.")
    return int(text)


def is_number(text: str) -> bool:
    """Whether a text is a whole number from 0 up that is not too long to be one of ours."""
    return text.isascii() and text.isdigit() and len(text) <= 16
