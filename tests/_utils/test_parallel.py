"""Results in the order of the items, with a bounded number of items read ahead."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from protorect import DataError
from protorect._utils.parallel import map_in_order, processes, threads


def slow_for_the_first(item):
    time.sleep(0.1 if item == 0 else 0)
    return item * item


def test_results_are_in_order():
    with ThreadPoolExecutor(3) as pool:
        assert list(map_in_order(pool, slow_for_the_first, range(10), 4)) == [
            i * i for i in range(10)
        ]


def test_no_more_than_the_limit_is_read_ahead():
    read = []

    def items():
        for i in range(20):
            read.append(i)
            yield i

    with ThreadPoolExecutor(2) as pool:
        for done, _ in enumerate(map_in_order(pool, abs, items(), 4)):
            assert len(read) <= done + 4


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("pool", [threads, processes])
def test_a_pool_gives_the_results_of_map(pool, workers):
    with pool(workers) as run:
        assert list(run(abs, [-3, 2, -1])) == [3, 2, 1]


def test_a_worker_that_ends_early_is_reported():
    message = "a worker process ended early.*try again with one worker"
    with pytest.raises(DataError, match=message), processes(2) as run:
        list(run(os._exit, [1]))


PRINT_THE_WORKER = """
import time
from protorect._utils.parallel import processes
if __name__ == "__main__":
    with processes(2) as run:
        print(*run(eval, ["__import__('os').getpid()"]))
        time.sleep(60)
"""


def test_workers_end_with_their_parent():
    command = [sys.executable, "-u", "-c", PRINT_THE_WORKER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        os.kill(worker, 0)  # it is alive
        parent.send_signal(signal.SIGKILL)
    for _ in range(100):
        if not is_running(worker):
            return
        time.sleep(0.1)
    pytest.fail("the worker still runs")


def is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
