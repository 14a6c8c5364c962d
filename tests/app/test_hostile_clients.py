"""Every call from foreign pages and hosts; a thousand connections; clients that send nothing."""

import json
import resource
import socket
import time

import pytest

from helpers.labeling_server import TOKEN, opened, served
from protorect.app import slow_clients
from protorect.app.openapi import openapi

BEARER = {"Authorization": f"Bearer {TOKEN}"}
CALLS = [
    (method.upper(), path.replace("{number}", "0"), one.get("requestBody") is not None)
    for path, methods in openapi()["paths"].items()
    for method, one in methods.items()
]
TRAVERSAL = ("../../../etc/passwd", "/etc/passwd", "..%2f..%2fetc%2fpasswd", "\\..\\x", "a\0b")
HEAD = b"POST /api/undo HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"


@pytest.fixture
def client(colors):
    with opened(colors) as session, served(session) as client:
        yield client


def test_every_call_is_refused_to_foreign_pages_hosts_and_tokens(client):
    before = client.get("state")["revision"]
    foreign = [
        ({"Host": "evil.example"}, 403),
        ({"Host": f"evil.example:{client.port}"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
    ]
    for method, path, _ in CALLS:
        for headers, status in foreign:
            answer = client.request(method, path, b"{}", BEARER | headers)
            assert answer[0] == status, (method, path, headers)
            assert "error" in json.loads(answer[2])
    assert client.get("state")["revision"] == before


def test_bodies_of_the_wrong_kind_and_size(client):
    bodies = [b"", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"[" * 10_000, b'{"ids": 1}']
    bodies += [b"{" + b" " * 10**6 + b"}", b"9" * 5000, b'{"ids": [1e999]}', b'{"label": {}}']
    for method, path, has_body in CALLS:
        for body in bodies if has_body else ():
            status, _, content = client.request(method, path, body, BEARER)
            assert status in (200, 400, 404, 409), (method, path, body[:20], content)
            assert b"Traceback" not in content


def test_no_parameter_reaches_a_file(client, colors):
    outside = sorted(path.name for path in colors.root.iterdir())
    description = openapi()["paths"]
    for path, methods in description.items():
        for method, one in methods.items():
            names = [name["name"] for name in one["parameters"] if name["in"] == "query"]
            for given in TRAVERSAL if path != "/api/events" else ():
                quoted = "&".join(f"{name}={given}" for name in names).replace("\0", "%00")
                address = f"{path.replace('{number}', '0')}?{quoted}".replace("\\", "%5C")
                status, _, content = client.request(method.upper(), address, b"{}", BEARER)
                assert status in (200, 400, 404, 409)
                assert b"root:" not in content
    for given in TRAVERSAL:
        client.post("export", {"format": given}, status=400)
        client.post("class", {"name": given, "ids": []}, status=400)
    assert sorted(path.name for path in colors.root.iterdir()) == outside


def _answered_in(client):
    start = time.monotonic()
    client.get("state")
    return time.monotonic() - start


def _connection(port, data=b""):
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(data)
    return connection


def test_a_thousand_connections_do_not_stop_the_others(client):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2400  # both ends are in this process
    if hard < needed:
        pytest.skip(f"only {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    half = HEAD % (client.port, TOKEN.encode())
    connections = []
    try:
        for number in range(1000):
            connections.append(_connection(client.port, half if number % 2 else b""))
        assert _answered_in(client) < 10  # seconds, on a busy machine
    finally:
        for one in connections:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert client.get("state")["pictures"]


@pytest.mark.parametrize("sent", [b"", b"GET /api/st", HEAD, HEAD + b"Content-Length: 9\r\n\r\n{"])
def test_a_client_that_sends_no_whole_request_is_left(client, monkeypatch, sent):
    monkeypatch.setattr(slow_clients, "SECONDS_FOR_A_REQUEST", 0.3)
    data = sent % (client.port, TOKEN.encode()) if b"%" in sent else sent
    with _connection(client.port, data) as connection:
        assert connection.recv(1000) == b""  # closed by the server


def test_a_client_that_listens_is_not_left(client, monkeypatch):
    monkeypatch.setattr(slow_clients, "SECONDS_FOR_A_REQUEST", 0.2)
    head = f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n"
    with _connection(client.port, f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode()) as one:
        assert b"200 OK" in one.recv(1000)
        time.sleep(0.5)
        client.post("label", {"ids": [0], "label": "red"})
        received = b""
        while b"change" not in received:
            part = one.recv(1000)
            assert part
            received += part
