"""Who may read and change what: token, Host, Origin, sizes, headers."""

from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from helpers.labeling_server import TOKEN, opened, served
from protorect.app.calls import CALLS

BEARER = {"Authorization": f"Bearer {TOKEN}"}
ADDRESSES = [(call.method, "/api/" + call.path.replace("{number}", "0")) for call in CALLS]
ADDRESSES += [("GET", "/api/events"), ("GET", "/api/openapi.json"), ("GET", "/")]


@pytest.fixture
def client(colors):
    with opened(colors) as session, served(session) as client:
        yield client


def host(client):
    return {"Host": f"127.0.0.1:{client.port}"}


@pytest.mark.parametrize(("method", "path"), ADDRESSES)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Cookie": "x=y"}])
def test_nothing_is_answered_without_the_token(client, method, path, headers):
    status, _, content = client.request(method, path, b"{}", headers)
    assert status == 401
    assert b"token" in content


def test_static_files_need_no_token(client):
    assert client.request("GET", "/static/style.css", headers={})[0] == 200


def test_the_address_with_the_token_sets_a_cookie_for_reading(client):
    status, headers, content = client.request("GET", f"/?token={TOKEN}", headers={})
    assert status == 200
    assert b"<!DOCTYPE html>" in content
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    given = {"Cookie": cookie.split(";")[0]}
    assert client.request("GET", "/api/state", headers=given)[0] == 200
    assert client.request("GET", "/", headers=given)[0] == 200
    assert client.request("POST", "/api/undo", b"{}", given)[0] == 401


@pytest.mark.parametrize(
    "name",
    ["evil.example", "evil.example:{port}", "127.0.0.1:1", "localhost.evil.example:{port}", ""],
)
def test_another_host_is_refused(client, name):
    headers = BEARER | {"Host": name.format(port=client.port)}
    assert client.request("GET", "/api/state", headers=headers)[0] == 403


@pytest.mark.parametrize("name", ["localhost:{port}", "127.0.0.1:{port}"])
def test_this_host_is_accepted(client, name):
    headers = BEARER | {"Host": name.format(port=client.port)}
    assert client.request("GET", "/api/state", headers=headers)[0] == 200


@pytest.mark.parametrize(
    "foreign",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_origins_are_refused(client, foreign):
    headers = BEARER | {name: value.format(port=client.port) for name, value in foreign.items()}
    assert client.request("POST", "/api/undo", b"{}", headers)[0] == 403
    own = BEARER | {"Origin": client.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert client.request("GET", "/api/state", headers=own)[0] == 200


def test_a_large_body_is_refused_before_it_is_read(client):
    declared = BEARER | {"Content-Length": str(10 * 2**20)}
    assert client.request("POST", "/api/label", b"{", declared)[0] == 413


def test_a_client_that_sends_a_large_body_first_is_answered(client):
    request = Request(f"{client.url}api/label", b" " * 20 * 2**20, BEARER)
    with pytest.raises(HTTPError) as refused:
        urlopen(request, timeout=60)
    assert refused.value.code == 413
    assert b"bytes" in refused.value.read()


def test_a_large_body_of_unknown_size_is_refused(client):
    chunks = b"100000\r\n" + b" " * 2**20 + b"\r\n"
    headers = BEARER | {"Transfer-Encoding": "chunked"}
    status, _, content = client.request("POST", "/api/label", chunks * 5 + b"0\r\n\r\n", headers)
    assert (status, b"bytes" in content) == (413, True)


def test_scripts_come_from_the_server_only(client):
    _, headers, content = client.request("GET", f"/?token={TOKEN}", headers={})
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert b" style=" not in content
    assert b"<script>" not in content
    assert b" onclick" not in content


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/%2e%2e/server.py",
        "/static/..%2fserver.py",
        "/../../etc/passwd",
    ]
    + [
        f"/api/picture/{name}"
        for name in ("..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "-1", "1e3")
    ],
)
def test_no_path_of_a_request_reaches_the_file_system(client, path):
    status, _, content = client.request("GET", path)
    assert status in (400, 404)
    assert b"root:" not in content
    assert b"import" not in content
