"""The benchmark compares like with like, and its page says what was measured."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.episodes import CASES, operations_of_an_episode
from benchmarks.machine import Machine, compare, extra_bytes_of_all
from benchmarks.page import performance_page
from benchmarks.plain import plain_bd_cspn
from benchmarks.plain_laplacian_shot import plain_laplacian_shot
from benchmarks.plain_pt_map import plain_pt_map
from benchmarks.plain_tim import plain_tim
from benchmarks.plus_page import plus_page
from benchmarks.sections import SECTIONS, section
from benchmarks.trainings import PAGE, all_kept, kept, trainings_page

from helpers.clusters import clusters
from protorect import evaluate, sample_episodes

ROOT = Path(__file__).parents[2]


def test_the_plain_version_gives_the_same_answers():
    features, labels = clusters()
    for shot in (1, 5):
        episodes = sample_episodes(labels, shot=shot, episodes=30)
        ours = evaluate(features, labels, ["bd-cspn"], shot=shot, episodes=episodes)[0]
        plain = plain_bd_cspn(torch.from_numpy(features), episodes, chunk=7)
        assert (plain.numpy() == ours.predictions).mean() > 0.999  # but for rounding


def test_the_plain_laplacian_shot_gives_the_same_answers():
    features, labels = clusters()
    for shot in (1, 5):
        episodes = sample_episodes(labels, shot=shot, episodes=20)
        ours = evaluate(features, labels, "laplacian-shot", episodes=episodes)[0]
        plain = plain_laplacian_shot(torch.from_numpy(features), episodes)
        assert (plain.numpy() == ours.predictions).mean() > 0.999  # but for rounding


@pytest.mark.parametrize(
    ("name", "plain"),
    [("tim:iterations=30", lambda *given: plain_tim(*given, 30)), ("pt-map", plain_pt_map)],
)
def test_one_task_at_a_time_gives_the_same_answers(name, plain):
    features, labels = clusters(spread=2.0)
    features = np.maximum(features, 0)
    for shot in (1, 5):
        episodes = sample_episodes(labels, shot=shot, episodes=6)
        ours = evaluate(features, labels, [name], shot=shot, episodes=episodes)[0]
        theirs = plain(torch.from_numpy(features), episodes)
        assert (theirs.numpy() == ours.predictions).mean() > 0.995  # but for rounding


def test_the_limit_is_the_slower_of_two_times():
    machine = Machine(copy=10.0, product=100.0)
    assert machine.least_seconds(50, 100) == 5
    assert machine.least_seconds(5, 1000) == 10


def test_bytes_and_operations_by_hand():
    case = CASES[0]
    assert case.bytes_gathered == 10_000 * 80 * 640 * 4
    assert operations_of_an_episode(5, 75, 640) == 2 * 75 * 640 * 17


def test_rates_are_compared_round_by_round():
    ours, bare = iter([0, 1, 8, 6]), iter([0, 2, 10, 12])
    found = compare(lambda: next(ours), lambda: next(bare), 3)
    assert found == {"ours": 6, "bare": 10, "fraction": 0.5}


def test_the_memory_of_children_counts():
    child = [sys.executable, "-c", "import time; x = b'x' * 200_000_000; time.sleep(0.5)"]
    needed = extra_bytes_of_all(lambda: subprocess.run(child, check=True))
    assert 200e6 <= needed < 300e6


@pytest.mark.parametrize("name", SECTIONS)
def test_a_small_version_of_every_section_runs(name):
    figures = json.loads(json.dumps(section(name).measure(small=True)))
    text = section(name).text(figures)
    assert text.endswith("\n")
    assert "{" not in text


def test_the_page_is_made_from_the_figures():
    figures = json.loads((ROOT / "results" / "performance.json").read_text())
    assert (ROOT / "docs" / "performance.md").read_text() == performance_page(figures)


def test_the_page_on_plus_is_up_to_date():
    root = Path(__file__).parents[2]
    figures = json.loads((root / "results" / "plus.json").read_text())
    assert (root / "docs" / "plus.md").read_text() == plus_page(figures)


def test_the_page_on_trainings_is_up_to_date():
    assert PAGE.read_text() == trainings_page(all_kept())


def test_a_run_is_kept_with_its_log(tmp_path):
    run = {"config": {"epochs": 2}, "data": {}, "versions": {}, "state": 1}
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / "log.jsonl").write_text('{"epoch": 1}\n{"epoch": 2}\n')
    assert kept(tmp_path) == {
        "config": {"epochs": 2},
        "data": {},
        "versions": {},
        "log": [{"epoch": 1}, {"epoch": 2}],
    }
