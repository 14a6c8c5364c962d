import json
import re
from pathlib import Path

import numpy as np
import pytest

from protorect import METHODS, save_features
from protorect.cli import main


@pytest.fixture
def two_sets(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(12), 25)
    for name in ("one", "two"):
        rows = rng.normal(size=(12, 8))[labels] + rng.normal(size=(300, 8))
        save_features(tmp_path / f"{name}.npz", rows, labels)
    return [str(tmp_path / "one.npz"), str(tmp_path / "two.npz")]


def test_writes_tables_json_and_a_page(two_sets, tmp_path, capsys):
    out, page = tmp_path / "out.json", tmp_path / "page.html"
    arguments = ["--episodes", "4", "--query", "5", "--json", str(out), "--html", str(page)]
    assert main(["compare", *two_sets, *arguments]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in METHODS)
    assert "mean rank" in shown
    document = json.loads(out.read_text())
    assert len(document["columns"]) == 12
    assert {row["method"] for row in document["summary"]} == set(METHODS)
    assert document["settings"]["features"] == ["one", "two"]
    text = page.read_text()
    assert text.count("<svg") == 5  # ranks, speed, and a heat map for each setting
    assert "bd-cspn-plus" in text


def test_writes_markdown_with_its_plots(two_sets, tmp_path, capsys):
    page = tmp_path / "new" / "page.md"
    methods = ["--method", "cspn", "--method", "bd-cspn"]
    options = ["--episodes", "3", "--query", "5", "--markdown", str(page)]
    assert main(["compare", *two_sets, *methods, *options]) == 0
    text = page.read_text()
    plots = re.findall(r"\]\((\S+\.svg)\)", text)
    assert plots == [f"figures/page-{i}.svg" for i in range(1, 6)]
    assert all((page.parent / plot).read_text().startswith("<svg") for plot in plots)
    assert text.count("| bd-cspn |") == 3  # the summary, and a table for each set
    assert str(page) in capsys.readouterr().out


def test_the_committed_page_shows_the_committed_results():
    root = Path(__file__).parents[2]
    document = json.loads((root / "results" / "compare.json").read_text())
    text = (root / "docs" / "comparison.md").read_text()
    for name in document["settings"]["features"]:
        section = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
        columns = [column for column in document["columns"] if column["features"] == name]
        for results in zip(*(column["results"] for column in columns), strict=True):
            cells = [f"{result['accuracy']:.2f} ± {result['ci95']:.2f}" for result in results]
            assert f"| {results[0]['method']} | {' | '.join(cells)} |" in section


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "tmi"], "unknown method 'tmi'"),
        (["--way", "40"], "one: "),
        (["--dirichlet", "-1"], "dirichlet"),
        (["--shot", "0"], "shot is 0"),
    ],
)
def test_a_mistake_is_one_sentence(two_sets, arguments, message, capsys):
    assert main(["compare", *two_sets, *arguments, "--episodes", "2"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_features_are_not_overwritten(two_sets, capsys):
    assert main(["compare", *two_sets, "--json", two_sets[0]]) == 2
    assert "one.npz" in capsys.readouterr().err
