"""Results in the order of the items, with a bounded number of items read ahead."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from protorect._utils.parallel import map_in_order, threads


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
def test_threads_give_the_results_of_map(workers):
    with threads(workers) as run:
        assert list(run(abs, [-3, 2, -1])) == [3, 2, 1]
