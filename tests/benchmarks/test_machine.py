"""Rates, limits and memory of the machine."""

import os
import subprocess
import sys

from benchmarks.machine import (
    Machine,
    busy_cores,
    compare,
    extra_bytes_of_all,
    in_new_process,
    rates_and_ratio,
)


def test_the_limit_is_the_slower_of_two_times():
    machine = Machine(copy=10.0, product=100.0)
    assert machine.least_seconds(50, 100) == 5
    assert machine.least_seconds(5, 1000) == 10


def test_rates_are_compared_round_by_round():
    library, bare = iter([0, 1, 8, 6]), iter([0, 2, 10, 12])
    rates = compare(lambda: next(library), lambda: next(bare), 3)
    assert rates == {"library": 6, "bare": 10, "fraction": 0.5}


def test_the_ratio_of_a_table_follows_from_the_rates_beside_it():
    assert rates_and_ratio({"library": 1500, "bare": 1000, "fraction": 1.4}) == [
        "1,500",
        "1,000",
        "1.50",
    ]


def test_work_in_a_new_process():
    assert in_new_process(os.getpid) != os.getpid()
    assert in_new_process(max, 1, 2) == 2


def test_the_memory_of_children_counts():
    child = [sys.executable, "-c", "import time; x = b'x' * 200_000_000; time.sleep(1.5)"]
    needed = extra_bytes_of_all(lambda: subprocess.run(child, check=True))
    assert 200e6 <= needed < 300e6


def test_a_busy_core_counts():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
        try:
            assert busy_cores(0.5) > 0.4
        finally:
            loop.kill()
