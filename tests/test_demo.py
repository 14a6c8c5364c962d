"""The demonstration says what it measured, no more."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from argparse import Namespace

import numpy as np
import pytest

from protorect import demo
from protorect.cli import main
from protorect.cli.demo import run
from protorect.demo import demo_page, run_demo
from protorect.demo.measure import ABLATION, SHOTS, WAY, Z
from protorect.demo.page import effect_text
from protorect.errors import DataError
from protorect.report.tables import accuracy_text, difference_text
from protorect.stats import Estimate
from test_page import Reader, outside

EPISODES = 20


@pytest.fixture(scope="module")
def result():
    return run_demo(episodes=EPISODES, seed=3)


@pytest.fixture(scope="module")
def html(result):
    return demo_page(result)


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_every_method_is_run_on_the_same_episodes(result):
    assert [(r.method, r.shot) for r in result.ablation] == [
        (name, shot) for shot in SHOTS for name in ABLATION
    ]
    curves = [
        one for by_shot in result.curves.values() for each in by_shot.values() for one in each
    ]
    assert {(r.way, r.query, r.episodes) for r in result.ablation + curves} == {(5, 15, EPISODES)}


def test_curves_start_at_cspn_and_pass_through_bd_i(result):
    for shot in SHOTS:
        for reading in ("samples", "classes"):
            start = result.curves[reading][shot][Z.index(0)]
            np.testing.assert_array_equal(start.per_episode, result.of("cspn", shot).per_episode)
        default = result.curves["samples"][shot][Z.index(8)]
        np.testing.assert_array_equal(default.per_episode, result.of("bd-i", shot).per_episode)


def test_expected_accuracy_is_equation_25(result):
    variance, expectation = result.moments.variance, result.moments.expectation
    for shot in SHOTS:
        by_hand = [
            result.eta * expectation / math.sqrt(variance / (shot + z) + expectation) for z in Z
        ]
        np.testing.assert_allclose(result.expected[shot], by_hand)


def test_the_episode_shown_is_of_this_run(result):
    shown = result.shown
    assert len(set(shown.names)) == WAY
    for method, predicted in shown.predicted.items():
        right = 100 * (predicted == np.arange(WAY)[:, None]).mean()
        assert right == pytest.approx(result.of(method, 1).per_episode[shown.number])


def test_the_page_is_one_file(html):
    assert outside(html) == []
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))


def test_the_same_seed_gives_the_same_page(html):
    assert demo_page(run_demo(episodes=EPISODES, seed=3)) == html


def test_another_seed_draws_other_episodes(result):
    other = run_demo(episodes=EPISODES, seed=4)
    assert other.ablation[0].per_episode.tolist() != result.ablation[0].per_episode.tolist()


def test_the_numbers_of_the_page_are_those_of_the_results(result, html):
    cells = [plain(cell) for cell in Reader(html).texts["td"]]
    expected = []
    for name in ABLATION:
        for shot in SHOTS:
            of_shot, first = result.of(name, shot), result.of("cspn", shot)
            difference = "" if name == "cspn" else difference_text(of_shot.minus(first))
            expected += [accuracy_text(of_shot), difference]
    assert cells[: len(expected)] == expected
    for reading in ("samples", "classes"):
        for shot in SHOTS:
            results = result.curves[reading][shot]
            best = max(results, key=lambda one: one.accuracy)
            assert accuracy_text(best) in cells[len(expected) :]
            assert difference_text(best.minus(results[0])) in cells[len(expected) :]


def test_the_lead_and_the_details_repeat_the_run(result, html):
    read = Reader(html)
    lead = plain(read.texts["p"][0])
    assert accuracy_text(result.of("cspn", 1)) in lead
    assert accuracy_text(result.of("bd-cspn", 1)) in lead
    assert effect_text(result.of("bd-cspn", 1).minus(result.of("cspn", 1))) in lead
    details = dict(zip(read.texts["dt"], read.texts["dd"], strict=True))
    assert details["command"] == f"protorect demo --episodes {EPISODES} --seed 3"
    assert details["seed"] == "3"
    assert "torch" in details["versions"]


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (Estimate(2.0, 0.5), "gains 2.00 ± 0.50 points"),
        (Estimate(-2.0, 0.5), "loses 2.00 ± 0.50 points"),
        (Estimate(0.4, 0.5), "shows no clear difference (+0.40 ± 0.50 points)"),
        (Estimate(-0.5, 0.5), "shows no clear difference (-0.50 ± 0.50 points)"),
        (Estimate(9.0, math.nan), "shows no clear difference (+9.00 points)"),
    ],
)
def test_a_gain_is_only_said_where_the_interval_excludes_zero(difference, said):
    assert effect_text(difference) == said


def test_one_episode_is_enough_for_a_page():
    html = demo_page(run_demo(episodes=1))
    assert "nan" not in " ".join(Reader(html).texts["td"])
    assert "shows no clear difference" in html


def test_progress_is_told():
    told = []
    run_demo(episodes=2, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2 * len(SHOTS), 2 * len(SHOTS))


def test_the_command_prints_the_table_and_last_the_path(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--episodes", "3", "--seed", "1"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == "protorect-demo.html"
    assert all(any(name in line for line in printed) for name in ABLATION)
    page = plain((tmp_path / "protorect-demo.html").read_text(encoding="utf-8"))
    assert "protorect demo --episodes 3 --seed 1" in page
    numbers = re.findall(r"[+-]?\d+\.\d\d ± \d+\.\d\d", "\n".join(printed))
    assert len(numbers) == len(SHOTS) * (2 * len(ABLATION) - 1)
    assert all(number in page for number in numbers)


def test_a_page_that_cannot_be_written_is_said_before_the_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "run_demo", lambda *_: pytest.fail("the work was begun"))
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert f"cannot write {tmp_path}: it is a folder" in capsys.readouterr().err


def test_a_path_below_a_file_is_a_data_error(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    options = Namespace(out=tmp_path / "file" / "page.html", episodes=2, seed=0)
    with pytest.raises(DataError, match="cannot write"):
        run(options)


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from protorect.cli import main\n"
        "try: main(['demo', '--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit(bool({'torch', 'matplotlib', 'sklearn'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--episodes" in ran.stdout
