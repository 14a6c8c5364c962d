"""A lock is held by one command at a time."""

import os
import subprocess
import sys
import textwrap

import pytest

from protorect import DataError
from protorect._utils.locks import locked

HOLDER = """
    import sys, time
    from pathlib import Path
    from protorect._utils.locks import locked
    with locked(Path(sys.argv[1]), "out"):
        print("locked", flush=True)
        time.sleep(60)
"""


def test_a_second_holder_is_refused_and_the_next_one_is_not(tmp_path):
    path = tmp_path / "new" / "lock"
    with locked(path, "out"):
        with pytest.raises(DataError, match=f"another command, process {os.getpid()} on .*; wait"):
            locked(path, "out").__enter__()
        assert path.exists()
    assert os.listdir(path.parent) == []
    with locked(path, "out"):
        pass


def test_a_lock_is_released_when_the_block_fails(tmp_path):
    path = tmp_path / "lock"
    with pytest.raises(RuntimeError), locked(path, "out"):
        raise RuntimeError
    with locked(path, "out"):
        pass


def test_a_lock_file_that_is_removed_while_held_is_no_error(tmp_path):
    with locked(tmp_path / "lock", "out"):
        (tmp_path / "lock").unlink()
    assert os.listdir(tmp_path) == []


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(path)], stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"locked\n"
    with pytest.raises(DataError, match="another command"), locked(path, "out"):
        pass
    holder.kill()
    holder.communicate()
    with locked(path, "out"):
        pass
