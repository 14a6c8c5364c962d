"""The command that serves the labeling page."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from helpers.labeling_server import opened
from protorect.cli import main


def start(*arguments):
    """Start the command; the process, its address and its token."""
    command = [sys.executable, "-m", "protorect", "label", *map(str, arguments), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    base, _, token = process.stdout.readline().strip().partition("/?token=")
    return process, base, token


def state(base, token):
    headers = {"Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{base}/api/state", headers=headers)
    ) as got:
        return json.load(got)


def label(base, token, ids, name):
    headers = {"Authorization": f"Bearer {token}"}
    body = json.dumps({"ids": ids, "label": name}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{base}/api/label", body, headers)).close()


def test_a_killed_server_loses_no_act_and_ctrl_c_ends_it(colors):
    project = colors.root / "project"
    new = [colors.pictures, "--out", project, "--network", colors.weights, "--no-cache"]
    process, base, token = start(*new)
    label(base, token, [0], "blue")
    label(base, token, [8], "green")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    process, base, token = start(project, "--no-cache")
    assert [one["name"] for one in state(base, token)["classes"]] == ["blue", "green"]
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{root}/nothing"], "nothing"),
        (["{pictures}", "{examples}"], "--out is missing"),
        (["{pictures}", "--out", "{root}/p", "--port", "99999"], "give another --port"),
        (["{pictures}", "--out", "{root}/p", "--host", "256.1.1.1"], "give another --port"),
        (["{pictures}", "--out", "{root}/p", "--host", ""], "the host is empty"),
        (["{pictures}", "--out", "{root}/p", "--token", "a b"], "letters, digits"),
        (["{pictures}", "--out", "{root}/p", "--token", "%41"], "letters, digits"),
    ],
)
def test_mistakes_are_one_sentence(colors, capsys, arguments, words):
    before = colors.tree()
    places = {"root": colors.root, "pictures": colors.pictures, "examples": colors.examples}
    given = [one.format(**places) for one in arguments]
    assert main(["label", *given, "--network", colors.weights, "--no-browser"]) == 2
    assert words in capsys.readouterr().err
    assert colors.tree() == before  # no project is left behind


def test_a_port_in_use_leaves_no_project(colors, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = [str(colors.pictures), "--out", str(colors.root / "p"), "--port", str(port)]
        assert main(["label", *given, "--network", colors.weights, "--no-browser"]) == 2
    error = capsys.readouterr().err
    assert f"port {port} (Address already in use); give another --port" in error
    assert not (colors.root / "p").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{project}", "--network", "nosuch"], "nosuch"),
        (["{project}", "--device", "nosuch"], "nosuch"),
        (["{root}/nothing", "--out", "{project}"], "nothing"),
    ],
)
def test_mistakes_leave_an_existing_project_as_it_is(colors, capsys, arguments, words):
    project = colors.root / "project"
    with opened(colors):
        pass
    settings = (project / "project.json").read_bytes()
    given = [one.format(project=project, root=colors.root) for one in arguments]
    assert main(["label", *given, "--no-browser"]) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.count("\n") == 1
    assert (project / "project.json").read_bytes() == settings
