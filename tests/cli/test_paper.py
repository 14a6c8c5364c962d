"""The command `protorect paper`: its files, its output and its errors."""

import json
import shutil

import pytest

from helpers.feature_files import write_features
from helpers.packed import save_weights
from helpers.page import Reader, requests_and_scripts
from helpers.paper import write_feature_sets, write_pictures
from protorect.cli import main

NAMES = ["omniglot", "ablation", "robust", "figures", "weights", "meta-dataset", "main"]


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    return write_feature_sets(tmp_path_factory.mktemp("features"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Packed pictures, a run and its features, where the experiments look for them."""
    return write_pictures(tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="module")
def made(features, tmp_path_factory):
    """Results, page and documents of some experiments, of few episodes."""
    folder = tmp_path_factory.mktemp("made")
    line = ["paper", *NAMES, "--features", features, "--episodes", "8", "--results", folder / "r"]
    line += ["--html", folder / "p.html", "--docs", folder / "docs"]
    assert main([str(word) for word in line]) == 0
    return folder


def test_each_experiment_writes_its_result(made):
    assert {path.stem for path in (made / "r").iterdir()} == set(NAMES) - {"main"}
    stored = json.loads((made / "r" / "omniglot.json").read_text())
    assert stored["seed"] == 0
    assert stored["seconds"] > 0
    assert {"protorect", "python", "torch", "numpy", "scikit-learn"} <= set(stored["versions"])
    assert [one["file"] for one in stored["features"]] == [
        "omniglot-conv64-val.npz",
        "omniglot-conv64-test.npz",
    ]
    assert {len(one["sha256"]) for one in stored["features"]} == {64}


def test_the_page_has_every_table_and_figure_or_the_commands_that_are_missing(made):
    html = (made / "p.html").read_text()
    assert requests_and_scripts(html) == []
    read = Reader(html)
    captions = " ".join(read.texts["caption"])
    for number in range(1, 15):
        assert f"Table {number}. " in captions
    assert len(read.all("svg")) == 2 * (2 + 2 + 2) + 2 * 4 + 2 * 2  # figures, robust, weights
    told = " ".join(read.texts["p"])
    assert "Not measured: mini-imagenet-conv64, mini-imagenet-wrn28-10, tiered-" in told
    within, beyond = read.texts["pre"]
    assert "protorect train data/cub --" in within
    assert "protorect train data/tiered-imagenet --" in beyond
    assert "wrn28-10" not in within
    assert "states an average rank of 1.9" in told


def test_from_results_gives_the_same_page_and_documents(features, tmp_path, capsys):
    measured = ["omniglot", "meta-dataset", "--features", features, "--episodes", "4"]
    for name, source in (
        ("a", [*measured, "--results", tmp_path / "r"]),
        ("b", ["--from-results", tmp_path / "r"]),
    ):
        line = [*source]
        line += ["--html", tmp_path / f"{name}.html", "--docs", tmp_path / name]
        capsys.readouterr()
        assert main(["paper", *map(str, line)]) == 0
    assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()
    assert (tmp_path / "a/results.md").read_text() == (tmp_path / "b/results.md").read_text()
    shown = capsys.readouterr().out
    assert "Table 6. Accuracy on Omniglot." in shown
    assert "Table 1. " not in shown


def test_documents_show_tables_and_figures(made):
    text = (made / "docs" / "results.md").read_text()
    assert "| CSPN, ConvNet-64 | 97.40 |" in text
    assert "![" in text
    assert "(figures/results-1.svg)" in text
    assert (made / "docs" / "figures" / "results-1.svg").read_text().startswith("<svg ")
    study = (made / "docs" / "weights.md").read_text()
    assert "| published, ε = 10 | +2.22 | +2.22 |" in study
    assert "At 1-shot and ε = 10 the paper's gain is +10.38" in study


def test_the_list_shows_what_can_run_and_what_is_needed(features, capsys):
    assert main(["paper", "--list", "--features", str(features)]) == 0
    shown = capsys.readouterr().out
    assert "omniglot: Omniglot (Table 6)\n  can run on omniglot-conv64\n" in shown
    assert (
        "main: Comparison with other systems on miniImageNet and tieredImageNet (Table 1, 2)"
        in shown
    )
    assert "  cannot run yet\n  mini-imagenet-conv64 needs\n    protorect prepare" in shown
    assert main(["paper", "cub", "--list", "--features", str(features)]) == 0
    assert "omniglot" not in capsys.readouterr().out


def test_the_list_shows_what_fine_tuning_needs(folder, tmp_path, capsys):
    line = ["paper", "tft", "--list", "--features", folder.path, "--runs", folder.runs, "--data"]
    assert main([str(word) for word in (*line, folder.data)]) == 0
    assert "tft on" not in capsys.readouterr().out
    assert main([str(word) for word in (*line, tmp_path)]) == 0
    shown = capsys.readouterr().out
    needed = f"    protorect prepare omniglot OMNIGLOT --out {tmp_path}/omniglot\n"
    assert f"  tft on omniglot-conv64 needs\n{needed}" in shown


def test_an_experiment_without_features_is_skipped_and_listed(tmp_path, capsys):
    line = ["paper", "cub", "--features", str(tmp_path), "--html", str(tmp_path / "p.html")]
    assert main(line) == 0
    assert "cub: no feature files of it in the folder" in capsys.readouterr().err
    assert "Not measured: cub-conv64" in (tmp_path / "p.html").read_text()


def error_of(capsys, *arguments):
    assert main(["paper", *map(str, arguments)]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("protorect: ")
    assert shown.err.count("\n") == 1
    return shown.err


def test_an_unknown_experiment(capsys):
    message = error_of(capsys, "omniglott")
    assert "unknown experiment 'omniglott'. Did you mean 'omniglot'?" in message


def test_a_run_of_the_wrong_data_set(tmp_path, features, capsys):
    shutil.copy(features / "cub-conv64-val.npz", tmp_path / "omniglot-conv64-val.npz")
    shutil.copy(features / "cub-conv64-test.npz", tmp_path / "omniglot-conv64-test.npz")
    message = error_of(capsys, "omniglot", "--features", tmp_path, "--results", tmp_path / "r")
    assert "omniglot-conv64-val.npz: its data is 'cub', not 'omniglot'" in message
    assert not (tmp_path / "r").exists()


def test_a_run_that_did_not_make_the_features(folder, tmp_path, capsys):
    (tmp_path / "omniglot-conv64").mkdir()
    save_weights(tmp_path / "omniglot-conv64/best.safetensors", seed=1, data="omniglot")
    line = ["paper", "tft", "--features", folder.path, "--data", folder.data, "--runs", tmp_path]
    assert main([*map(str, line), "--episodes", "2"]) == 2
    shown = capsys.readouterr().err
    assert "weights differs. Give what `protorect extract` was given." in shown
    assert main([*map(str, line), "--fine-tuned-episodes", "1"]) == 2
    assert (
        "--fine-tuned-episodes is 1; it must be a whole number from 2 up."
        in capsys.readouterr().err
    )


def test_validation_and_test_features_of_different_weights(tmp_path, capsys):
    write_features(tmp_path, "omniglot", "conv64", "val")
    write_features(tmp_path, "omniglot", "conv64", "test", manifest={"weights": "x" * 64})
    assert "were made by different weights" in error_of(capsys, "omniglot", "--features", tmp_path)


def test_too_few_classes(tmp_path, capsys):
    for split in ("val", "test"):
        write_features(tmp_path, "omniglot", "conv64", split, classes=12)
    message = error_of(capsys, "higher-way", "--features", tmp_path, "--episodes", 2)
    assert "omniglot-conv64-test.npz: an episode needs 20 classes, there are 12" in message


def test_options_that_do_not_go_together(tmp_path, capsys):
    assert "neither names nor --results" in error_of(capsys, "cub", "--from-results", tmp_path)
    assert "must be a whole number from 2 up" in error_of(capsys, "cub", "--episodes", 1)
    assert "holds no results" in error_of(capsys, "--from-results", tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"measured": [{"z": 1}], "features": []}'])
def test_a_file_that_is_not_a_result(tmp_path, capsys, text):
    (tmp_path / "cub.json").write_text(text)
    message = error_of(capsys, "--from-results", tmp_path)
    assert "cub.json is not a result of `protorect paper`" in message


def test_a_page_that_cannot_be_written_is_an_error_before_the_work(tmp_path, features, capsys):
    (tmp_path / "file").touch()
    message = error_of(
        capsys, "omniglot", "--features", features, "--html", tmp_path / "file" / "p.html"
    )
    assert "cannot write" in message
