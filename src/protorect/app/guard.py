"""What stands before every request: the token, Host and Origin, sizes, and the headers of answers.

The server runs on the user's own machine, where any page of the browser can send requests to it.
So a request needs the token, must name this server as its host (any other name that resolves
to this machine is refused) and must not come from another origin.
"""

import asyncio
import ipaddress
import secrets
from collections.abc import Mapping
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 4 * 2**20  # bytes; 100,000 labels in one act need one megabyte
_MOST_SKIPPED, _SECONDS_OF_SKIPPING = 64 * 2**20, 10.0  # of a body that is refused
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_OPEN_THE_ADDRESS = "open the address that the command printed, with its token"


class Guard:
    """ASGI middleware that lets only requests of this server's own page and token holders pass."""

    def __init__(self, app: ASGIApp, *, token: str, host: str, port: int) -> None:
        self.app, self.token, self.host, self.port = app, token, host, port
        self.cookie = f"protorect-{port}"  # its name: cookies are shared by all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an unwanted request; pass the others on, with bounded bodies."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            large = refusal.status_code == 413
            answer = _finished_after_body(receive, send) if large else send
            await refusal(scope, receive, self._with_headers(answer))
            return
        body = _BoundedBody(receive)
        await self.app(scope, body, self._with_headers(send, self._new_cookie(scope)))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that may not pass."""
        path = scope["path"]
        if not self._is_this_host(headers.get("host", "")):
            return _error(403, "the request names another host than this server")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            return _error(403, "the request comes from another origin")
        # A link on another page may lead to ours, and nowhere else.
        link = path == "/" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not link:
            return _error(403, "the request comes from another site")
        if _declared_size(headers) > LARGEST_BODY:
            return _error(413, f"the request has more than {LARGEST_BODY:,} bytes")
        if path.startswith("/static/") or self._knows_token(scope, headers):
            return None
        if path == "/":
            return PlainTextResponse(f"To see the page, {_OPEN_THE_ADDRESS}.\n", 401)
        return _error(401, f"the token is missing or wrong; {_OPEN_THE_ADDRESS}")

    def _is_this_host(self, host: str) -> bool:
        """Whether the Host header is an address, localhost or the given name, with the port.

        A name server can let any name lead here, but it cannot change an address.
        """
        has_port = ":" in host.rpartition("]")[2]
        name, _, port = host.rpartition(":") if has_port else (host, "", "80")
        if port != str(self.port):
            return False
        if name.lower() in ("localhost", self.host.lower()):
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True

    def _knows_token(self, scope: Scope, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._is_token(given.strip())
        if scope["method"] not in ("GET", "HEAD"):
            return False  # other sites can make a browser send cookies, but no headers
        if scope["path"] == "/" and self._in_address(scope):
            return True
        return self._is_token(_cookies(headers).get(self.cookie, ""))

    def _in_address(self, scope: Scope) -> bool:
        values = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        return self._is_token(values[0])

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    def _new_cookie(self, scope: Scope) -> str | None:
        if scope["path"] != "/" or not self._in_address(scope):
            return None
        return f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def _with_headers(self, send: Send, cookie: str | None = None) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                if cookie is not None:
                    headers.append("Set-Cookie", cookie)
            await send(message)

        return send_with_headers


class BodyTooLargeError(Exception):
    """A body without a declared size turned out to be too large."""


class _BoundedBody:
    """Receives a body and stops when it has too many bytes."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.size = 0

    async def __call__(self) -> Message:
        message = await self.receive()
        self.size += len(message.get("body", b""))
        if self.size > LARGEST_BODY:
            raise BodyTooLargeError
        return message


def _finished_after_body(receive: Receive, send: Send) -> Send:
    """Send an answer at once, but end it after the body: most clients send all before they read."""

    async def send_and_read(message: Message) -> None:
        if message["type"] == "http.response.body":
            await send({**message, "more_body": True})
            with suppress(TimeoutError):
                await asyncio.wait_for(_skip_body(receive), _SECONDS_OF_SKIPPING)
            message = {"type": "http.response.body", "body": b""}
        await send(message)

    return send_and_read


async def _skip_body(receive: Receive) -> None:
    """Read what is left of a body, up to a bound, and keep nothing of it."""
    skipped = 0
    while skipped <= _MOST_SKIPPED:
        message = await receive()
        skipped += len(message.get("body", b""))
        if not message.get("more_body", False):
            return


def _error(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": f"{sentence}."}, status)


def _declared_size(headers: Headers) -> int:
    try:
        return int(headers.get("content-length", "0"))
    except ValueError:
        return LARGEST_BODY + 1


def _cookies(headers: Mapping[str, str]) -> dict[str, str]:
    try:
        parsed = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in parsed.items()}
