"""`protorect evaluate` through its real entry point, and its errors on bad input."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers.clusters import clusters
from protorect import METHODS, Episodes, evaluate
from protorect.cli import main
from protorect.methods import PAPER

COMMAND = Path(sys.executable).parent / "protorect"


def protorect(*arguments, cwd=None):
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False
    )


@pytest.fixture
def files(tmp_path, feature_set, monkeypatch):
    """A folder with good and bad feature files, made the current one."""
    monkeypatch.chdir(tmp_path)
    features, labels = feature_set
    np.savez("good.npz", features=features, labels=labels)
    broken = features.copy()
    broken[[3, 17]] = np.nan
    np.savez("nan.npz", features=broken, labels=labels)
    np.savez("shuffled.npz", features=np.roll(features, 7, axis=0), labels=np.roll(labels, 7))
    np.savez("short.npz", features=features, labels=labels[:-1])
    np.savez("one-class.npz", features=features, labels=np.zeros_like(labels))
    np.savez("other.npz", features=features[:, :3], labels=labels)
    np.savez("no-features.npz", labels=labels)
    np.savez("pickled.npz", features=np.array([{}, {}], dtype=object), labels=labels[:2])
    np.savez("one-group.npz", features=features, labels=labels, groups=np.zeros_like(labels))
    Path("corrupt.npz").write_bytes(Path("good.npz").read_bytes()[:999])
    Path("blocked").write_text("a file where a folder is expected")
    return tmp_path


def test_the_contract_line(files, feature_set):
    methods = [word for name in PAPER for word in ("--method", name)]
    done = protorect(
        "evaluate", "good.npz", *methods, "--way", 5, "--shot", 1, "--shot", 5, "--query", 15,
        "--episodes", 60, "--seed", 0, "--save-episodes", "e.npz", "--json", "o.json",
        "--csv", "o.csv", "--predictions", "p.npz", cwd=files,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    expected = evaluate(*feature_set, PAPER, shot=[1, 5], episodes=60)

    document = json.loads(Path("o.json").read_text())
    fields = {"method", "way", "shot", "query", "episodes", "accuracy", "ci95", "seconds"}
    assert all(set(record) == fields for record in document["results"])
    for record, result in zip(document["results"], expected, strict=True):
        assert record["accuracy"] == pytest.approx(result.accuracy)
        assert record["ci95"] == pytest.approx(result.ci95)
        assert (record["method"], record["shot"]) == (result.method, result.shot)
    assert len(document["differences"]) == 8
    assert document["differences"][0]["difference"] == pytest.approx(
        expected[1].accuracy - expected[0].accuracy
    )
    assert document["settings"]["seed"] == 0
    assert "torch" in document["settings"]["versions"]

    table = list(csv.DictReader(Path("o.csv").read_text().splitlines()))
    assert [row["method"] for row in table] == [result.method for result in expected]
    assert float(table[0]["accuracy"]) == pytest.approx(expected[0].accuracy)

    predictions = np.load("p.npz")
    assert (predictions["bd-cspn, 5-shot"] == expected[8].predictions).all()
    assert Episodes.load("e.npz").support.shape == (60, 5, 5)
    assert f"{expected[0].accuracy:.2f} ± {expected[0].ci95:.2f}" in done.stdout


def test_all_methods_at_once(files, capsys):
    line = "evaluate good.npz --method all --shot 1 --episodes 5 --json o.json"
    assert main(line.split()) == 0
    shown = capsys.readouterr()
    results = json.loads(Path("o.json").read_text())["results"]
    assert [result["method"] for result in results] == list(METHODS)
    assert all(name in shown.out for name in METHODS)
    assert shown.err == "left out: tft, without --network and --pictures\n"


def test_the_base_mean_of_a_file(files):
    line = "evaluate good.npz --method cspn --method simpleshot --shot 1 --episodes 5"
    assert main([*line.split(), "--base", "shuffled.npz", "--json", "o.json"]) == 0
    document = json.loads(Path("o.json").read_text())
    names = [result["method"] for result in document["results"]]
    assert names == ["cspn", "simpleshot:base_mean=given"]
    assert document["settings"]["base"] == "shuffled.npz"


def test_saved_episodes_give_the_same_results_again(files, capsys):
    line = "evaluate good.npz --episodes 30 --save-episodes e.npz --json a.json"
    assert main(line.split()) == 0
    again = "evaluate good.npz --load-episodes e.npz --way 5 --shot 1 --shot 5 --json b.json"
    assert main(again.split()) == 0
    results = [json.loads(Path(name).read_text())["results"] for name in ("a.json", "b.json")]
    for record in results[0] + results[1]:
        del record["seconds"]
    assert results[0] == results[1]
    assert "bd-cspn-classes" in capsys.readouterr().out


def test_loaded_episodes_determine_the_shot(files, capsys):
    line = "evaluate good.npz --method cspn --shot 3 --episodes 5 --save-episodes e.npz"
    assert main(line.split()) == 0
    capsys.readouterr()
    assert main(["evaluate", "good.npz", "--method", "cspn", "--load-episodes", "e.npz"]) == 0
    assert "3-shot" in capsys.readouterr().out


def test_unbalanced_queries_and_distractors(files):
    line = "evaluate good.npz --method cspn --shot 1 --episodes 20 --dirichlet 1 --distractors 2"
    assert main([*line.split(), "--save-episodes", "e.npz"]) == 0
    episodes = Episodes.load("e.npz")
    assert (episodes.query_way == -1).sum() == 20 * 2 * 15
    assert len(set((episodes.query_way == 0).sum(axis=1))) > 3


def test_only_present_classes_have_queries(files):
    line = "evaluate good.npz --method cspn --shot 1 --episodes 20 --present 2 --json o.json"
    assert main([*line.split(), "--save-episodes", "e.npz"]) == 0
    assert Episodes.load("e.npz").query.shape == (20, 30)
    document = json.loads(Path("o.json").read_text())
    assert document["settings"]["present"] == 2
    assert document["results"][0]["query"] == 15


def test_groups_of_the_file_are_used_and_reported(files, feature_set, capsys):
    features, labels = feature_set
    groups = np.arange(len(labels)) // 4
    np.savez("grouped.npz", features=features, labels=labels, groups=groups)
    line = "evaluate grouped.npz --method cspn --episodes 20 --save-episodes e.npz --json o.json"
    assert main(line.split()) == 0
    expected = "120 groups in grouped.npz: support and queries of an episode share none\n"
    assert capsys.readouterr().err == expected
    Episodes.load("e.npz").check_groups(groups)
    assert json.loads(Path("o.json").read_text())["settings"]["groups"] == 120
    assert main(["evaluate", "grouped.npz", "--load-episodes", "e.npz"]) == 0
    assert main(["evaluate", "good.npz", "--episodes", "20", "--save-episodes", "e.npz"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "grouped.npz", "--load-episodes", "e.npz"]) == 2
    assert "share the group" in capsys.readouterr().err


def test_one_episode_has_no_interval(files, capsys):
    line = "evaluate good.npz --method cspn --shot 1 --episodes 1 --json o.json"
    assert main(line.split()) == 0
    assert json.loads(Path("o.json").read_text())["results"][0]["ci95"] is None
    assert "±" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("missing.npz", "there is no file missing.npz"),
        ("corrupt.npz", "corrupt.npz is not a .npz file, or only part of one"),
        ("no-features.npz", "no-features.npz has no array features; it holds labels"),
        ("pickled.npz", "features.npy cannot be read: it holds pickled objects"),
        ("nan.npz", "nan.npz: 2 of 480 feature rows hold NaN or infinite values: row 3, 17"),
        ("short.npz", "480 rows of features and labels of shape (479,)"),
        ("one-class.npz", "one-class.npz: all labels are 0; at least two classes are needed"),
        ("good.npz --way 13", "an episode needs 13 classes, there are 12"),
        ("good.npz --way 1000000000", "an episode needs 1000000000 classes"),
        ("good.npz --shot 26", "class 0 has 40 samples; 26 shots"),
        ("good.npz --method bd-csp", "unknown method 'bd-csp'. Did you mean 'bd-cspn'?"),
        ("good.npz --method bd-cspn:zz=3", "unknown option of bd-cspn 'zz'"),
        ("good.npz --json blocked/o.json", "cannot write blocked/o.json"),
        ("good.npz --save-episodes .", "it is a folder; give the name of a file"),
        ("good.npz --load-episodes good.npz", "has no array support, query, query_way"),
        ("good.npz --load-episodes e.npz --shot 2", "have 1 shots; 2 cannot be selected"),
        ("good.npz --load-episodes e.npz --way 4", "--way 4 does not agree with e.npz"),
        ("good.npz --load-episodes e.npz --dirichlet 2", "--dirichlet is for sampling"),
        ("shuffled.npz --load-episodes e.npz", "or from these in another order"),
        ("good.npz --save-episodes good.npz", "good.npz is named twice"),
        ("good.npz --json a.txt --csv a.txt", "a.txt is named twice"),
        ("good.npz --episodes 1000000000000", "do not fit into memory"),
        ("good.npz --dirichlet -1", "dirichlet is -1.0"),
        ("good.npz --present 6", "present is 6; an episode has 5 classes"),
        ("good.npz --load-episodes e.npz --present 2", "--present is for sampling"),
        ("one-group.npz", "class 0 has too few groups, 1"),
        ("good.npz --base good.npz", "base is for simpleshot and laplacian-shot"),
        ("good.npz --method simpleshot --base no-features.npz", "has no array features"),
        ("good.npz --method simpleshot --base other.npz", "base_mean has 3 dimensions"),
        ("good.npz --method simpleshot --base nan.npz", "nan.npz: 2 of 480 feature rows hold NaN"),
        ("good.npz --validation nan.npz", "validation: nan.npz: 2 of 480 feature rows hold NaN"),
        ("good.npz --method cspn --validation nan.npz", "validation: nan.npz: 2 of 480 feature"),
        ("good.npz --method cspn --validation missing.npz", "there is no file missing.npz"),
        ("good.npz --seed -1", "seed is -1"),
        ("good.npz --device abacus", "device 'abacus' cannot be used"),
    ],
)
def test_a_mistake_is_reported_in_one_sentence_and_no_file_is_written(
    files, capsys, arguments, message
):
    line = "evaluate good.npz --method cspn --shot 1 --episodes 3 --save-episodes e.npz"
    assert main(line.split()) == 0
    capsys.readouterr()
    before = sorted(os.listdir())
    words = arguments.split()
    if "--json" not in words:
        words += ["--json", "out.json"]
    assert main(["evaluate", *words]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.startswith("protorect: ")
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert sorted(os.listdir()) == before


def test_a_mistake_through_the_real_entry_point(files):
    done = protorect("evaluate", "nan.npz", cwd=files)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_not_a_traceback(files):
    shell = f"'{COMMAND}' evaluate good.npz --episodes 5 | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("1", "")


def test_an_interrupt_is_not_a_traceback(files, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("protorect.cli.evaluate.evaluate", interrupted)
    assert main(["evaluate", "good.npz"]) == 130
    assert capsys.readouterr().err == "protorect: interrupted\n"


def test_names_are_shown_verbatim_and_in_full(files, capsys):
    os.rename("good.npz", "cub[train]:smile:.npz")
    names = [f"bd-cspn:z=4,epsilon=20.0,weighting=classes,rank={r}" for r in ("cosine", "softmax")]
    options = [word for name in names for word in ("--method", name)]
    assert main(["evaluate", "cub[train]:smile:.npz", "--episodes", "3", *options]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ["cub[train]:smile:.npz", *names])


@pytest.mark.parametrize("where", ["> /dev/full", ">&-"])
def test_a_full_or_closed_output_is_not_a_traceback(files, where):
    shell = f"'{COMMAND}' evaluate good.npz --episodes 3 --json o.json {where}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == (1 if "full" in where else 0)


def test_an_output_in_ascii_gets_replacement_characters(files):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [COMMAND, "evaluate", "good.npz", "--episodes", "3"],
        capture_output=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"bd-cspn-classes" in done.stdout


def test_float16_features_with_negative_labels(files):
    features, labels = clusters(classes=7, each=31, dim=3, spread=0.3, seed=9, dtype=np.float64)
    np.savez("new.npz", features=features.astype(np.float16), labels=labels - 3)
    assert main(["evaluate", "new.npz", "--episodes", "10", "--way", "7"]) == 0
