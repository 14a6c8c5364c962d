"""An export of Label Studio: JSON, or JSON-MIN, with one choice per picture."""

import os
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from protorect._utils.documents import checked, parse_json
from protorect._utils.files import read_bytes
from protorect._utils.text import printable
from protorect.errors import DataError
from protorect.labeling.examples.found import Example, Found, Row, example_of

_CHOICE = {"value": {"choices?": [str]}}
_TASK = {"data": {str: object}, "annotations?": [{"result": [_CHOICE], "was_cancelled?": object}]}
_IMAGE, _LABEL = ("path", "image", "img", "picture"), ("label", "choice", "class")


def recognizes(path: str, head: bytes) -> bool:
    """Whether it is a file with a JSON list."""
    return os.path.isfile(path) and head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def read(path: str, nested: bool) -> Found:
    """The tasks that have an annotation; the last one that was not cancelled counts."""
    name, root = printable(path), os.path.dirname(os.path.abspath(path))
    try:
        tasks = parse_json(read_bytes(path), [{str: object}])
        for number, task in enumerate(tasks, 1):
            if "data" in task:
                _check(task, number)
    except ValueError as error:
        raise DataError(f"{name} is no export of Label Studio: {error}.") from error
    examples = []
    for number, task in enumerate(tasks, 1):
        where = f"{name}, task {number}"
        label = _label(task, where)
        if label is not None:
            examples.append(_example(task.get("data", task), label, where, root))
    return Found(examples)


def _check(task: dict[str, Any], number: int) -> None:
    try:
        checked(task, _TASK)
    except ValueError as error:
        raise ValueError(f"task {number}: {error}") from error


def _label(task: dict[str, Any], where: str) -> str | None:
    """The label of a task; None if it is not labeled yet."""
    labels: list[Any]
    if "data" not in task:  # JSON-MIN
        chosen = next((task[name] for name in _LABEL if name in task), None)
        choices = chosen["choices"] if isinstance(chosen, dict) and "choices" in chosen else chosen
        labels = choices if isinstance(choices, list) else [] if choices is None else [choices]
    else:
        labels = []
        for annotation in task.get("annotations", []):
            if not annotation.get("was_cancelled"):
                results = [one["value"].get("choices", []) for one in annotation["result"]]
                labels = [choice for choices in results for choice in choices] or labels
    if len(labels) > 1 or not all(isinstance(one, str) for one in labels):
        raise DataError(f"{where}: a picture needs one label, it has {labels!r:.100}.")
    return str(labels[0]) if labels else None


def _example(data: dict[str, Any], label: str, where: str, root: str) -> Example:
    """The example of a task; its picture is looked for beside the file, too."""
    given = next((data[name] for name in _IMAGE if isinstance(data.get(name), str)), None)
    if given is None:
        raise DataError(f"{where}: there is no picture; it should be in data.image.")
    address = urlsplit(given)
    if address.scheme in ("http", "https", "s3", "gs"):
        raise DataError(
            f"{where}: {given:.200} is not on this machine; download it and give its path."
        )
    place = parse_qs(address.query).get("d", [None])[0] if "local-files" in address.path else None
    names = [given] if place is None else [f"/{place}", place]
    names += [os.path.basename(unquote(names[-1]))]  # where Label Studio's own copies were put
    name = next((one for one in names if os.path.isfile(os.path.join(root, one))), names[0])
    return example_of(Row(where, name, label), label, root)
