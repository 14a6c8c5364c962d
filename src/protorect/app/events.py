"""Server-sent events: what changed in the session, as it happens."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from protorect.app.calls import Query, is_number, parse_query
from protorect.labeling.records import Event
from protorect.labeling.session import LabelingSession

SINCE = {"since": Query("number", "The revision that the caller knows; what followed comes first.")}
QUIET = 10.0  # seconds after which a comment keeps the connection open
MOST_STREAMS = 64  # browsers and scripts that may listen at the same time
_MOST_WAITING = 1000  # events of one listener; one that is further behind reads all again


class EventStreams:
    """The listeners of a session."""

    def __init__(self, session: LabelingSession) -> None:
        self.session = session
        self.waiting: set[asyncio.Queue[Event | None]] = set()  # one queue per listener

    async def listen(self, request: Request) -> Response:
        """Answer `GET /api/events`; `Last-Event-ID` or `since` resumes after that revision."""
        if len(self.waiting) >= MOST_STREAMS:
            sentence = f"{MOST_STREAMS} listeners are connected already; close one of them."
            return JSONResponse({"error": sentence}, 429)
        given = parse_query(request.query_params.multi_items(), SINCE)
        last = request.headers.get("last-event-id", "")
        since = int(last) if is_number(last) else None
        stream = self._stream(given.get("since") if since is None else since)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    def close(self) -> None:
        """End all streams, so that the server can stop."""
        for waiting in self.waiting:
            if waiting.full():
                waiting.get_nowait()
            waiting.put_nowait(None)

    async def _stream(self, since: int | None) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[Event | None] = asyncio.Queue(_MOST_WAITING)

        def put(event: Event) -> None:
            if waiting.full():  # the listener will miss this one, so it must read all again
                waiting.get_nowait()
                event = _read_again(event.revision)
            waiting.put_nowait(event)

        def put_from_thread(event: Event) -> None:
            loop.call_soon_threadsafe(put, event)

        unsubscribe = self.session.subscribe(put_from_thread)
        self.waiting.add(waiting)
        try:
            yield ": listening\n\n"
            for event in self._missed(since):
                yield _text(event)
            while True:
                try:
                    news = await asyncio.wait_for(waiting.get(), QUIET)
                except TimeoutError:
                    yield ": quiet\n\n"
                    continue
                if news is None:
                    return
                yield _text(news)
        finally:
            self.waiting.remove(waiting)
            unsubscribe()

    def _missed(self, since: int | None) -> list[Event]:
        if since is None:
            return []
        events = self.session.events_since(since)
        return [_read_again(self.session.state().revision)] if events is None else events


def _read_again(revision: int) -> Event:
    data: dict[str, Any] = {"revision": revision, "act": None, "changed": [], "summary": []}
    return Event("change", revision, data)


def _text(event: Event) -> str:
    identifier = "" if event.kind == "progress" else f"id: {event.revision}\n"
    return f"{identifier}event: {event.kind}\ndata: {json.dumps(event.data)}\n\n"
