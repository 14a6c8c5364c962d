"""Results of `evaluate` as a table, JSON and CSV."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from protorect._utils.tables import table_text
from protorect.core.statistics import Estimate
from protorect.evaluation.result import Result
from protorect.report.table import Table

COLUMNS = ("method", "way", "shot", "query", "episodes", "accuracy", "ci95", "seconds")


def results_table(results: Sequence[Result], caption: str) -> Table:
    """One row per method: for each shot, accuracy and paired difference to the first method."""
    shots = list(dict.fromkeys(result.shot for result in results))
    methods = list(dict.fromkeys(result.method for result in results))
    by_key = {(result.method, result.shot): result for result in results}
    header, rows = ["method"], [[name] for name in methods]
    for shot in shots:
        compared = [f"minus {methods[0]}"] if len(methods) > 1 else []
        header += [f"{shot}-shot", *compared]
        first = by_key[methods[0], shot]
        for row, name in zip(rows, methods, strict=True):
            result = by_key[name, shot]
            difference = "" if result is first else difference_text(result.minus(first))
            row += [accuracy_text(result), difference][: 1 + len(compared)]
    return Table(caption, header, rows)


def accuracy_text(result: Result) -> str:
    """Accuracy in percent with its interval, as in "84.10 ± 0.52"."""
    return f"{result.accuracy:.2f}{_interval(result.ci95)}"


def difference_text(difference: Estimate) -> str:
    """A difference of accuracies with its interval, as in "+2.60 ± 0.31"."""
    return f"{difference.mean:+.2f}{_interval(difference.ci95)}"


def results_json(results: Sequence[Result], settings: dict[str, Any]) -> str:
    """Results, every method's paired difference to the first, and the settings, as JSON."""
    document = {
        "results": [result_record(result) for result in results],
        "differences": list(_differences(results)),
        "settings": settings,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def results_csv(results: Iterable[Result]) -> str:
    """Results as comma-separated values with a header line."""
    return table_text(COLUMNS, [list(result_record(result).values()) for result in results])


def result_record(result: Result) -> dict[str, Any]:
    """One result as a dict, as it is written to JSON and CSV."""
    return {column: _without_nan(getattr(result, column)) for column in COLUMNS}


def _differences(results: Sequence[Result]) -> Iterable[dict[str, Any]]:
    """Each result minus the first method's at the same shot."""
    first: dict[int, Result] = {}
    for result in results:
        other = first.setdefault(result.shot, result)
        if result is not other:
            mean, ci95 = result.minus(other)
            names = {"method": result.method, "minus": other.method, "shot": result.shot}
            yield names | {"difference": mean, "ci95": _without_nan(ci95)}


def _without_nan(value: Any) -> Any:
    """None for NaN, which JSON does not have: the interval of a single episode is not known."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _interval(ci95: float) -> str:
    return "" if math.isnan(ci95) else f" ± {ci95:.2f}"
