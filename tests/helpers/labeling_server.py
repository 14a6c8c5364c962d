"""A labeling session served on a free port, and a client that speaks its HTTP API."""

import http.client
import json
from contextlib import contextmanager, suppress

from protorect.app.server import Address, serving
from protorect.labeling.session import LabelingSession

TOKEN = "a-token-of-the-tests"


class Client:
    """Requests with the token; every one of them through a connection of its own."""

    def __init__(self, port, token=TOKEN):
        self.port, self.token = port, token

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def request(self, method, path, body=None, headers=None):
        """Status, headers and bytes of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}"} if headers is None else headers
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
                connection.request(method, path, content, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def call(self, method, path, body=None, status=200):
        """The JSON of an answer that has this status."""
        got, _, content = self.request(method, f"/api/{path}", body)
        assert got == status, (got, content)
        return json.loads(content)

    def get(self, path, status=200):
        return self.call("GET", path, status=status)

    def post(self, path, body, status=200):
        return self.call("POST", path, body, status)


@contextmanager
def served(session, port=0, token=TOKEN):
    """A client of the session's server, which runs until the end of the block."""
    with serving(session, Address(port=port, token=token)) as address:
        yield Client(address.port, token)


@contextmanager
def opened(colors, examples=True):
    """A session of the colored pictures, all of them embedded."""
    given = colors.examples if examples else None
    project = colors.root / "project"
    with LabelingSession.open(
        project, colors.pictures, given, source=colors.weights, cache=False
    ) as session:
        assert session.wait(60)
        yield session
