"""Threads and processes that compute in order, read ahead a little, and end when they should."""

import subprocess
import sys
import textwrap
import threading
import time

import pytest

from protorect._utils.parallel import processors, threads


def test_results_are_in_the_order_of_the_items():
    def slow_if_even(number):
        time.sleep(0.002 * (number % 2 == 0))
        return number

    with threads(4) as run:
        assert list(run(slow_if_even, range(50))) == list(range(50))


def test_only_a_few_items_are_read_ahead():
    read = []
    items = (read.append(number) or number for number in range(1000))
    with threads(2) as run:
        assert next(run(abs, items)) == 0
        assert len(read) <= 8


def test_threads_end_with_the_block():
    before = threading.active_count()
    with threads(2) as run:
        next(run(abs, range(1000)))
    assert threading.active_count() == before


def test_an_error_of_the_function_is_raised():
    with threads(2) as run, pytest.raises(ZeroDivisionError):
        list(run(lambda number: 1 / number, [1, 0]))


def test_there_is_at_least_one_processor():
    assert processors() >= 1


def test_worker_processes_exit_with_a_killed_parent():
    code = """
        import multiprocessing, time
        from protorect._utils.parallel import processes
        if __name__ == "__main__":
            with processes(2) as run:
                for _ in run(time.sleep, [0.1] * 8):
                    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
                    time.sleep(60)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    children = [int(pid) for pid in process.stdout.readline().split()]
    process.kill()
    process.wait()
    process.stdout.close()
    assert len(children) == 2
    end = time.monotonic() + 20
    while any(is_running(pid) for pid in children):
        assert time.monotonic() < end, "a worker outlived its parent"
        time.sleep(0.05)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
