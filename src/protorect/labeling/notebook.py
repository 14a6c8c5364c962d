"""A session in a notebook: a table of its classes with a few thumbnails each."""

import base64
from typing import Any

from markupsafe import Markup, escape

from protorect.errors import ProtorectError

_THUMBNAILS, _CLASSES = 5, 20


def session_html(session: Any) -> str:
    """The HTML of a small table; everything is escaped."""
    state = session.state()
    estimate = state.expected_accuracy
    head = f"{state.pictures} pictures, {state.embedded} embedded"
    if estimate is not None:
        head += f", expected accuracy {100 * estimate.value:.1f} %"
    rows = [
        _row(
            session,
            one.name,
            f"{one.examples + one.accepted} checked, {one.proposed} proposed",
            label=one.name,
        )
        for one in state.classes[:_CLASSES]
    ]
    if len(state.classes) > _CLASSES:
        rows.append(Markup("<tr><td>and {} more</td></tr>").format(len(state.classes) - _CLASSES))
    if not state.classes:
        rows.append(_row(session, "no classes yet", ""))
    table = Markup("<table>{}</table>").format(Markup("").join(rows))
    return str(Markup("<div><p>{}</p>{}</div>").format(head, table))


def _row(session: Any, name: str, counts: str, label: str | None = None) -> Markup:
    page = session.pictures(label=label, limit=_THUMBNAILS)
    images = Markup("").join(_image(session, one) for one in page.pictures)
    return Markup("<tr><td>{}</td><td>{}</td><td>{}</td></tr>").format(name, counts, images)


def _image(session: Any, picture: Any) -> Markup:
    try:
        data = base64.b64encode(session.thumbnail(picture.id)).decode()
    except ProtorectError:
        return escape("")
    return Markup('<img alt="{}" style="height:64px" src="data:image/webp;base64,{}">').format(
        picture.name, data
    )
