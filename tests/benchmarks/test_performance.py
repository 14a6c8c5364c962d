"""Every section of the benchmark measures, and makes the tables of its regions."""

import json
import pickle
from dataclasses import replace
from functools import partial

import pytest
from benchmarks.browser import CHROMIUM
from benchmarks.documents import load_results
from benchmarks.episodes import CASES, operations_of_an_episode
from benchmarks.performance import SECTIONS, section
from benchmarks.plain_tim import plain_tim

from benchmarks import methods


@pytest.fixture
def cheap(monkeypatch):
    """Memory measured in this process (tests/benchmarks/test_machine.py has the real one), and
    TIM with few iterations."""
    for name in SECTIONS:
        if hasattr(section(name), "in_new_process"):
            monkeypatch.setattr(section(name), "in_new_process", in_this_process)
    few = {"method": "tim:iterations=5", "plain": partial(plain_tim, iterations=5)}
    ratios = [replace(one, **few) if one.method == "tim" else one for one in methods.RATIOS]
    monkeypatch.setattr(methods, "RATIOS", ratios)


def in_this_process(work, *arguments):
    work, arguments = pickle.loads(pickle.dumps((work, arguments)))
    return work(*arguments)


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("name", SECTIONS)
def test_a_small_version_of_every_section_runs(name):
    if name == "labeling_page" and CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    figures = json.loads(json.dumps(section(name).measure(small=True)))
    tables = section(name).tables(figures)
    committed = section(name).tables(load_results("performance")[name]["figures"])
    assert tables.keys() == committed.keys()
    assert all(table.rows for table in tables.values())


def test_bytes_and_operations_by_hand():
    case = CASES[0]
    assert case.bytes_gathered == 10_000 * 80 * 640 * 4
    assert operations_of_an_episode(5, 75, 640) == 2 * 75 * 640 * 17
