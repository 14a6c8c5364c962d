"""Results of `evaluate` as a table; tests/cli/test_evaluate.py has JSON and CSV."""

import numpy as np

from protorect.evaluation.evaluate import Result
from protorect.report.results import results_table


def result(method, accuracy, ci95, per_episode):
    predictions = np.zeros((2, 75), np.int32)
    return Result(method, 5, 1, 15, accuracy, ci95, 0.1, np.array(per_episode), predictions)


def test_differences_to_the_first_method_are_paired():
    results = [result("cspn", 65.0, 9.8, [60.0, 70.0]), result("bd-i", 68.0, 11.76, [62.0, 74.0])]
    table = results_table(results, "caption")
    assert table.caption == "caption"
    assert table.header == ["method", "1-shot", "minus cspn"]
    assert table.rows == [["cspn", "65.00 ± 9.80", ""], ["bd-i", "68.00 ± 11.76", "+3.00 ± 1.96"]]


def test_a_single_episode_has_no_interval():
    (row,) = results_table([result("cspn", 60.0, float("nan"), [60.0])], "caption").rows
    assert row == ["cspn", "60.00"]
