"""One limit of memory for all threads that decode."""

import subprocess
import sys
import threading
import time

import pytest

from helpers.bombs import gif, png
from protorect.errors import OptionError
from protorect.images import memory
from protorect.images.decode import decode
from protorect.images.memory import MemoryLimit, decoding_memory, share_decoding_memory
from protorect.images.stored import UnreadableError

MB = 2**20


@pytest.fixture
def variable(monkeypatch):
    """Set the environment variable for one test."""

    def set_to(text):
        monkeypatch.setenv(memory.MEMORY_VARIABLE, text)
        decoding_memory.cache_clear()

    yield set_to
    monkeypatch.undo()
    decoding_memory.cache_clear()


def test_reservations_never_exceed_the_limit(variable):
    variable("100")
    limit = MemoryLimit(0.5)
    assert limit.total == 50 * MB
    lock, used, largest = threading.Lock(), 0, 0

    def work(count):
        nonlocal used, largest
        with limit.reserve(count):
            with lock:
                used += count
                largest = max(largest, used)
            time.sleep(0.002)
            with lock:
                used -= count

    threads = [threading.Thread(target=work, args=(n * MB,)) for n in (20, 50, 1, 30, 25) * 6]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert used == 0
    assert 30 * MB <= largest <= 50 * MB


def test_what_failed_is_free_again(variable):
    variable("100")
    limit = MemoryLimit(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), limit.reserve(80 * MB):
            raise ZeroDivisionError


@pytest.mark.parametrize("text", ["x", "-5", "10", "1.5", "9" * 5000, "²"])
def test_a_wrong_setting_is_named(variable, text):
    variable(text)
    with pytest.raises(OptionError, match="PROTORECT_DECODING_MB has to be a number of megabytes"):
        decoding_memory()


def test_processes_share_the_memory(variable, monkeypatch):
    monkeypatch.setattr(memory, "_processes", 1)
    variable("1000")
    share_decoding_memory(4)
    assert decoding_memory() == 250 * MB
    message = "the limit is 125 MB, set PROTORECT_DECODING_MB to at least 2000"
    assert MemoryLimit(1 / 2).exceeded_by(250 * MB) == message


def test_a_picture_that_is_too_large_says_how_to_read_it(variable):
    data = png(6000, 6000, 8, 2)
    variable("64")
    with pytest.raises(UnreadableError, match="the limit is 48 MB, set PROTORECT_") as refused:
        decode(data, 64, 3)
    variable(str(refused.value).split()[-1])
    decode(data, 64, 3)


BOMBS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from protorect.images.decode import decode
from protorect.images.stored import StoredPicture, UnreadableError
def peak():
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x]
    return int(line.split()[1]) // 1024
def work(file):
    try:
        with StoredPicture.from_file(file).content() as data:
            decode(data, 64, 3)
        return ""
    except UnreadableError as error:
        return str(error)
small, *files = sys.argv[1:]
with ThreadPoolExecutor(6) as pool:
    list(pool.map(work, [small] * 6))  # so that what Pillow and the threads load is not counted
    before = peak()
    print(list(pool.map(work, files)))
print(peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_bombs_in_all_threads_stay_within_the_memory(tmp_path, monkeypatch):
    monkeypatch.setenv(memory.MEMORY_VARIABLE, "200")
    files = [str(tmp_path / "small.png")]
    (tmp_path / "small.png").write_bytes(png(64, 64, 8, 2))
    for number, data in enumerate([png(5000, 5000, 16, 6), gif(9999), png(6000, 6000, 8, 2)] * 2):
        (tmp_path / f"{number}.jpg").write_bytes(data)
        files.append(str(tmp_path / f"{number}.jpg"))
    # What is freed goes back to the system at once: only what is in use is counted.
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "65536")
    done = subprocess.run(
        [sys.executable, "-c", BOMBS, *files], capture_output=True, text=True, timeout=120
    )
    reasons, used = done.stdout.splitlines()
    assert reasons == str(["", "truncated", ""] * 2), done.stderr
    # One picture takes 100 to 137 MB, two of the large ones 274, all at once 750.
    assert 90 < int(used) < 200
