"""Serve a labeling session: the page, its files and the HTTP API."""

import re
import secrets
import shlex
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from protorect._utils.documents import parse_json
from protorect.app.calls import CALLS, Call, parse_number, parse_query
from protorect.app.events import EventStreams
from protorect.app.guard import LARGEST_BODY, BodyTooLargeError, Guard
from protorect.app.openapi import openapi
from protorect.app.slow_clients import ImpatientProtocol
from protorect.errors import ConflictError, NotFoundError, OptionError, ProtorectError
from protorect.labeling.session import LabelingSession

STATIC = Path(__file__).parent / "static"
_BACKLOG = 4096  # connections that wait to be accepted
_TOKEN = re.compile(r"[A-Za-z0-9._~-]+")
_STOP = 1  # seconds that open connections get when the server stops
_STATUSES: dict[type[Exception], int] = {NotFoundError: 404, ConflictError: 409}


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    host: str = "127.0.0.1"
    port: int = 0  # 0 for a free one
    token: str = ""

    def __post_init__(self) -> None:
        if not self.host:
            raise OptionError("the host is empty; give the address to listen on.")
        if self.token and not _TOKEN.fullmatch(self.token):
            raise OptionError(
                f"the token is {self.token!r}; it may have letters, digits and . _ ~ - only, which "
                "stand in an address as they are."
            )

    @property
    def url(self) -> str:
        """The address without the token."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/"

    @property
    def with_token(self) -> str:
        """The address that opens the page."""
        return f"{self.url}?token={self.token}"


def serve(
    session: LabelingSession,
    address: Address,
    listener: socket.socket,
    ready: Callable[[str], None],
) -> None:
    """Serve the session until it is interrupted; `ready` gets the address with the token."""
    bound = _bound(address, listener)
    session.set_address(bound.url)
    server = _Server(application(session, bound), lambda: ready(bound.with_token))
    server.run(sockets=[listener])


@contextmanager
def serving(session: LabelingSession, address: Address) -> Iterator[Address]:
    """Serve the session in a thread, until the end of the `with` block."""
    with listening(address) as listener:
        bound, started = _bound(address, listener), threading.Event()
        server = _Server(application(session, bound), started.set)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        started.wait()
        try:
            yield bound
        finally:
            server.should_exit = True
            thread.join()


def _bound(address: Address, listener: socket.socket) -> Address:
    """The address with its real port and token."""
    token = address.token or secrets.token_urlsafe(24)
    return Address(address.host, listener.getsockname()[1], token)


class _Server(uvicorn.Server):
    """A server that says when it answers, and stops although browsers listen."""

    def __init__(self, app: Starlette, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                http=ImpatientProtocol,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=_STOP,
            )
        )
        self._ready = ready
        self._streams: EventStreams = app.state.streams

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams of events, which would go on for ever, and stop."""
        self._streams.close()
        await super().shutdown(sockets)


def listening(address: Address) -> socket.socket:
    """A socket bound to the port of the address, so that no other process can take it."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio sends at once only on sockets that name TCP. Otherwise the body of an answer waits for
    # the browser to confirm its head: 40 ms (RFC 896).
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(
            f"cannot listen on {address.host}, port {address.port} ({reason}); give another "
            "--port, or 0 for a free one."
        ) from error
    return listener


def application(session: LabelingSession, address: Address) -> Starlette:
    """The web application of a session."""
    description = openapi()
    streams = EventStreams(session)
    project = {
        "name": session.path.name,
        "path": str(session.path),
        "command": f"protorect label {shlex.quote(str(session.path))}",
    }

    async def state(request: Request) -> Response:
        answer = await run_in_threadpool(session.state)
        return JSONResponse({**answer.json(), "project": project})

    async def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    async def describe(request: Request) -> Response:
        return JSONResponse(description)

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/api/state", state),
            *(Route(f"/api/{c.path}", _endpoint(session, c), methods=[c.method]) for c in CALLS),
            Route("/api/events", streams.listen),
            Route("/api/openapi.json", describe),
            Mount("/static", _Static(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, token=address.token, host=address.host, port=address.port)],
        exception_handlers={
            ProtorectError: _refused,
            HTTPException: _no_such_address,
            BodyTooLargeError: _too_large,
        },
    )
    app.router.redirect_slashes = False
    app.state.streams = streams
    return app


class _Static(StaticFiles):
    """The page's own files, which the browser asks for again after an update."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        """A file that may be kept but must be checked."""
        response = super().file_response(*args, **options)
        response.headers["Cache-Control"] = "no-cache"
        return response


def _endpoint(session: LabelingSession, call: Call) -> Callable[[Request], Awaitable[Response]]:
    """The function that answers a call: check what is given, ask the session in a thread."""

    async def endpoint(request: Request) -> Response:
        parameters = parse_query(request.query_params.multi_items(), call.query)
        arguments: list[Any] = []
        if "number" in request.path_params:
            arguments.append(parse_number("number", request.path_params["number"]))
        if call.body is not None:
            arguments.append(_body(await request.body(), call.body))
        return await run_in_threadpool(call.answer, session, *arguments, **parameters)

    return endpoint


def _body(content: bytes, expected: Any) -> Any:
    try:
        return parse_json(content or b"{}", expected)
    except ValueError as error:
        raise OptionError(f"the body cannot be used: {error}.") from error


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, _STATUSES.get(type(error), 400))


async def _no_such_address(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    sentences = {404: "there is nothing at this address.", 405: "this call has another method."}
    return JSONResponse({"error": sentences.get(status, f"{error}.")}, status)


async def _too_large(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": f"the request has more than {LARGEST_BODY:,} bytes."}, 413)
