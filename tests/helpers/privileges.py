"""Permissions that count for root, too: as in containers, where tests often run as root."""

import ctypes
import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

# What lets root read and write everything: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
_CAPABILITIES = (1, 2)
_DROP_FROM_BOUNDING_SET = 24  # of prctl
_VERSION = 0x20080522  # of capget and capset
_COMMANDS = """
import contextlib, io, json, sys
from protorect.cli import main
ends = []
for arguments in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        ends.append((main(arguments), said.getvalue()))
print(json.dumps(ends))
"""


@contextmanager
def permissions_count():
    """Let the permissions of files count in this thread, and in those that it starts."""
    if os.geteuid() != 0:
        yield
        return
    if sys.platform != "linux":
        pytest.skip("root may read and write everything")
    libc = ctypes.CDLL(None)
    header, sets = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    effective = sets[0]
    sets[0] &= ~sum(1 << one for one in _CAPABILITIES)
    assert libc.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = effective
        assert libc.capset(header, sets) == 0


def run_commands(commands):
    """Exit code and messages of each command, in a process in which permissions count."""
    if os.geteuid() == 0 and sys.platform != "linux":
        pytest.skip("root may read and write everything")
    ended = subprocess.run(
        [sys.executable, "-c", _COMMANDS],
        input=json.dumps([list(map(str, one)) for one in commands]),
        preexec_fn=_drop if os.geteuid() == 0 else None,
        capture_output=True,
        text=True,
        check=True,
    )
    return [tuple(one) for one in json.loads(ended.stdout.splitlines()[-1])]


def _drop():
    libc = ctypes.CDLL(None)
    for one in _CAPABILITIES:
        libc.prctl(_DROP_FROM_BOUNDING_SET, one, 0, 0, 0)
