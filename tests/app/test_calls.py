"""The calls of the HTTP API, as other programs use them."""

import json
import socket
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from helpers.labeling_server import TOKEN, opened, served
from protorect.app.calls import CALLS
from protorect.app.openapi import openapi

STATE = {
    "classes", "pictures", "embedded", "unreadable", "unsure", "unknown", "expected_accuracy",
    "revision", "act", "last", "undo", "redo", "progress",
}  # fmt: skip
PICTURE = {
    "id", "name", "label", "status", "probability", "runner_up", "top", "was", "ood", "width",
    "height", "version", "error",
}  # fmt: skip


@pytest.fixture
def client(colors):
    with opened(colors) as session, served(session) as client:
        yield client


def color(picture):
    return picture["name"].split("/")[-2] if "/" in picture["name"] else None


def test_state_and_pictures_have_the_fields_of_the_contract(client):
    state = client.get("state")
    assert state.keys() >= STATE
    assert {one["name"] for one in state["classes"]} == {"blue", "green", "red"}
    assert [one["key"] for one in state["classes"]] == ["1", "2", "3"]
    page = client.get("pictures?order=name&limit=3")
    assert len(page["pictures"]) == 3
    assert page["pictures"][0].keys() >= PICTURE
    assert page["total"] == state["pictures"]
    everything = client.get("pictures?fields=id")
    assert sorted(everything["ids"]) == list(range(state["pictures"]))


def test_a_label_answers_what_else_changed_and_undo_takes_it_back(client):
    before = client.get("state")
    first = client.get("pictures?status=proposed&limit=1")["pictures"][0]
    other = next(one["name"] for one in before["classes"] if one["name"] != first["label"])
    answer = client.post("label", {"ids": [first["id"]], "label": other})
    assert answer.keys() >= {"revision", "act", "changed", "summary", "state"}
    assert first["id"] not in [one["id"] for one in answer["changed"]]
    assert sum(one["count"] for one in answer["summary"]) == len(answer["changed"])
    after = client.get(f"pictures?ids={first['id']}")["pictures"][0]
    assert (after["label"], after["status"]) == (other, "example")
    client.post("undo", {})
    assert client.get(f"pictures?ids={first['id']}")["pictures"][0]["label"] == first["label"]
    client.post("redo", {})
    assert client.get(f"pictures?ids={first['id']}")["pictures"][0]["label"] == other


def test_an_act_that_is_sent_again_is_done_once(client):
    before = client.get("state")["undo"]
    body = {"ids": [0], "label": "blue", "act_id": "one"}
    first, second = client.post("label", body), client.post("label", body)
    assert first["act"] == second["act"]
    assert client.get("state")["undo"] == before + 1


def test_an_act_on_a_picture_that_somebody_else_labeled_is_refused(client):
    revision = client.get("state")["revision"]
    client.post("label", {"ids": [0], "label": "blue"})
    refused = client.post("label", {"ids": [0], "label": "red", "revision": revision}, 409)
    assert "error" in refused


def test_classes_are_added_renamed_merged_and_removed(client):
    client.post("class", {"name": "violet", "ids": [1]})
    client.call("PATCH", "class", {"name": "violet", "rename": "purple"})
    client.call("PATCH", "class", {"name": "purple", "key": "9"})
    client.call("PATCH", "class", {"name": "purple", "position": 0})
    state = client.get("state")
    assert (state["classes"][0]["name"], state["classes"][0]["key"]) == ("purple", "9")
    client.call("PATCH", "class", {"name": "purple", "merge_into": "red"})
    assert client.get("pictures?ids=1")["pictures"][0]["label"] == "red"
    client.call("DELETE", "class?name=red")
    assert [one["name"] for one in client.get("state")["classes"]] == ["blue", "green"]


def test_pictures_are_marked_unknown_and_unsure_and_taken_back(client):
    client.post("label", {"ids": [2], "unknown": True})
    client.post("label", {"ids": [3], "unsure": True})
    statuses = [one["status"] for one in client.get("pictures?ids=2,3")["pictures"]]
    assert statuses == ["unknown", "unsure"]
    client.post("label", {"ids": [2, 3], "label": None})
    statuses = {one["status"] for one in client.get("pictures?ids=2,3")["pictures"]}
    assert not statuses & {"example", "accepted"}
    client.post("label", {"labels": {"2": "red", "3": "blue"}})
    assert [one["label"] for one in client.get("pictures?ids=2,3")["pictures"]] == ["red", "blue"]


def test_images_are_served_by_number(client):
    status, headers, content = client.request("GET", "/api/thumbnail/0?v=1")
    assert (status, headers["Content-Type"], content[8:12]) == (200, "image/webp", b"WEBP")
    assert "immutable" in headers["Cache-Control"]
    status, headers, content = client.request("GET", "/api/picture/0")
    assert (status, content[1:4]) == (200, b"PNG")
    assert client.get("thumbnail/999999", 404)["error"]


def test_a_larger_audit_extends_the_sample_and_keeps_its_answers(client):
    first = client.get("audit?n=5")
    answers = [{"id": first["pictures"][0]["id"], "right": True}]
    found = client.post("audit", {"audit": first["audit"], "answers": answers})
    larger = client.get("audit?n=9")
    assert (larger["audit"], larger["population"]) == (first["audit"], first["population"])
    ids = [one["id"] for one in larger["pictures"]]
    assert ids[:5] == [one["id"] for one in first["pictures"]]
    assert len(set(ids)) == 9
    assert [one["id"] for one in larger["answers"]] == ids[:1]
    assert larger["estimate"] == found


def test_suggestions_groups_audit_and_export(client, colors):
    assert client.get("suggest?n=2")["pictures"]
    assert client.get("groups").keys() >= {"revision", "groups", "single"}
    audit = client.get("audit?n=5")
    assert audit.keys() >= {"audit", "revision", "population", "pictures"}
    answers = [{"id": one["id"], "right": True} for one in audit["pictures"]]
    found = client.post("audit", {"audit": audit["audit"], "answers": answers, "finish": True})
    assert (found["checked"], found["right"], found["accuracy"]) == (5, 5, 1.0)
    assert found["low"] < 1
    written = client.post("export", {"format": "csv", "include": "all"})
    assert (colors.root / "project") in Path(written["path"]).parents


class Listener:
    """A stream of events; the server knows it when the first bytes of its body are here."""

    def __init__(self, client, path="/api/events", **headers):
        given = {"Host": f"127.0.0.1:{client.port}", "Authorization": f"Bearer {TOKEN}"} | headers
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.connection = socket.create_connection(("127.0.0.1", client.port), 60)
        self.connection.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        self.received = b""
        self.until(b": listening\n\n")

    def until(self, words):
        """Read up to these words."""
        while words not in self.received:
            part = self.connection.recv(65536)
            assert part, self.received
            self.received += part
        before, _, self.received = self.received.partition(words)
        return before

    def event(self, kind):
        """The data of the next event of a kind."""
        self.until(f"event: {kind}\ndata: ".encode())
        return json.loads(self.until(b"\n\n"))

    def close(self):
        self.connection.close()


def test_events_say_what_changed(client):
    with closing(Listener(client)) as listener:
        act = client.post("label", {"ids": [0], "label": "red"})
        data = listener.event("change")
    assert (data["revision"], data["act"]) == (act["revision"], act["act"])


@pytest.mark.parametrize(
    ("path", "header"), [("/api/events?since={}", {}), ("/api/events", {"Last-Event-ID": "{}"})]
)
def test_a_listener_gets_what_happened_since_it_read(client, path, header):
    revision = client.get("state")["revision"]
    act = client.post("label", {"ids": [0], "label": "red"})
    headers = {name: value.format(revision) for name, value in header.items()}
    with closing(Listener(client, path.format(revision), **headers)) as listener:
        data = listener.event("change")
    assert (data["revision"], data["act"]) == (act["revision"], act["act"])


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "pictures?limit=x", None, 400, "limit is 'x'; it must be a whole number"),
        ("GET", "pictures?order=best", None, 400, "order is 'best'; it must be one of"),
        ("GET", "pictures?clas=red", None, 400, "unknown parameter 'clas'"),
        ("GET", "pictures?class=nothing", None, 404, "nothing"),
        ("GET", "pictures?ids=" + ",".join("1" * 501), None, 400, "501 numbers; 500 are allowed"),
        ("GET", "events?since=x", None, 400, "since is 'x'; it must be a whole number"),
        ("GET", "nothing", None, 404, "nothing at this address"),
        ("DELETE", "label", None, 405, "another method"),
        ("POST", "label", b"{", 400, "not JSON"),
        ("POST", "label", {"ids": "1", "label": "red"}, 400, "ids is '1'; it must be a list"),
        ("POST", "label", {"ids": [1]}, 400, "give one of label, unknown, unsure and labels"),
        ("POST", "label", {"ids": [99999], "label": "red"}, 404, "99999"),
        ("POST", "label", {"labels": {"x": "red"}}, 400, "the keys are numbers"),
        ("POST", "label", {"labels": {"7": "red", "007": "blue"}}, 400, "one picture twice"),
        ("GET", "state/", None, 404, "nothing at this address"),
        ("GET", f"pictures?order={'x' * 99}", None, 400, f"{'x' * 40}'; it must"),
        ("POST", "class", {"name": "_unknown"}, 400, "_unknown"),
        ("POST", "class", {"name": "a/b"}, 400, "/"),
        ("PATCH", "class", {"name": "red"}, 400, "give one of rename"),
        ("DELETE", "class", None, 400, "the parameter name is missing"),
        ("DELETE", "class?name=", None, 400, "the parameter name is missing or empty"),
        ("POST", "label", {"labels": {"1" * 17: "a"}}, 400, f"the key '{'1' * 17}'; the keys are"),
        ("POST", "label", {"labels": {"1": "a", "x": "a"}}, 400, "labels has the key 'x'"),
        ("POST", "export", {"format": "pdf"}, 400, "format is 'pdf'"),
        ("POST", "label", b"[" * 100_000, 400, "JSON"),
    ],
)
def test_a_wrong_request_is_refused_with_a_sentence(client, method, path, body, status, words):
    answer = client.call(method, path, body, status)
    assert words in answer["error"]
    assert answer["error"].endswith(".")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
names = st.sampled_from(sorted({key.removesuffix("?") for c in CALLS for key in c.body or {}}))
queries = st.sampled_from(sorted({key for call in CALLS for key in call.query}))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(CALLS),
    st.dictionaries(names, values),
    st.dictionaries(queries, st.text(max_size=6), max_size=2),
)
def test_no_request_makes_the_server_fail(client, call, body, query):
    path = f"/api/{call.path.replace('{number}', '3')}?{urlencode(query)}"
    content = json.dumps(body).encode() if call.body is not None else None
    status, _, answer = client.request(call.method, quote(path, safe="/?=&%+"), content)
    assert status in (200, 400, 404, 409)
    if status != 200:
        assert json.loads(answer)["error"]


def test_the_description_lists_every_call(client):
    description = client.get("openapi.json")
    assert description == json.loads(json.dumps(openapi()))
    for call in CALLS:
        assert call.method.lower() in description["paths"][f"/api/{call.path}"]


def test_the_server_stops_although_somebody_listens(colors, caplog):
    with opened(colors) as session:
        with served(session) as client:
            listener = Listener(client)
        listener.close()
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
