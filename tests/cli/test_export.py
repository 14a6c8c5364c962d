"""`protorect export` from a project and from a sorted folder."""

import csv
import json

import pytest

from helpers.labeling import opened
from protorect import ImageClassifier, LabelingSession
from protorect.cli import main
from protorect.labeling.exports import FORMATS

FOLDERS = ("folders", "split", "huggingface", "fiftyone")


@pytest.fixture
def project(colors):
    with opened(colors, examples=colors.examples) as session:
        session.accept([session.pictures(label="red", status="proposed").pictures[0].id])
    return colors.out


@pytest.fixture
def sorted_folder(colors, capsys):
    arguments = ["sort", colors.pictures, "--examples", colors.examples, "--out", colors.out]
    assert main([*map(str, arguments), "--network", colors.weights, "--no-cache"]) == 0
    capsys.readouterr()
    return colors.out


@pytest.fixture(params=["project", "sorted_folder"])
def root(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_from_a_project_and_from_a_sorted_folder(root, tmp_path, capsys, name, colors):
    out = tmp_path / "exported" / ("data" if name in FOLDERS else "data.out")
    out.parent.mkdir()
    arguments = [str(root), "--format", name, "--out", str(out), "--no-cache"]
    assert main(["export", *arguments, "--network", colors.weights]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(f"pictures: {out}\n")
    count = int(printed.split()[0])
    if name == "csv":
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == count == 33
        assert sum(row["status"] == "example" for row in rows) == 9
    elif name == "label-studio":
        assert len(json.loads(out.read_text())) == count
    elif name == "classifier":
        assert ImageClassifier.load(out, cache=False).classes == ("blue", "green", "red")
    elif name in FOLDERS:
        assert sum(path.suffix == ".png" for path in out.rglob("*")) == count


def test_only_accepted_and_min_probability(project, tmp_path, capsys):
    def count(*options):
        out = tmp_path / f"{len(list(tmp_path.iterdir()))}.csv"
        assert main(["export", str(project), "--format", "csv", "--out", str(out), *options]) == 0
        return int(capsys.readouterr().out.split()[0])

    assert count("--only", "accepted") == 10
    assert count("--min-probability", "1.0") <= count("--min-probability", "0") <= count() == 33


def test_a_project_can_be_exported_while_it_is_open(project, tmp_path):
    with LabelingSession.open(project, cache=False):
        arguments = [str(project), "--format", "csv", "--out", str(tmp_path / "x.csv")]
        assert main(["export", *arguments]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "docx"], "unknown export format 'docx'"),
        (["--format", "csv", "--min-probability", "7"], "min_probability is 7.0"),
        (["--format", "csv", "--only", "accepted", "--min-probability", "0.5"], "not both"),
        (["--format", "split", "--validation", "2"], "--validation is 2"),
    ],
)
def test_mistakes_are_one_sentence(project, tmp_path, capsys, options, message):
    assert main(["export", str(project), "--out", str(tmp_path / "x"), *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_another_folder_is_refused(tmp_path, capsys):
    arguments = [str(tmp_path), "--format", "csv", "--out", str(tmp_path / "x.csv")]
    assert main(["export", *arguments]) == 2
    assert "neither a labeling project nor a folder" in capsys.readouterr().err


def test_a_sorted_folder_is_opened_as_a_project(sorted_folder, colors):
    before = {name: one for name, one in colors.tree().items() if ".protorect/labeling" not in name}
    with LabelingSession.open(sorted_folder, source=colors.weights, cache=False) as session:
        assert session.wait(60)
        state = session.state()
        assert state.pictures == 33
        assert [(one.name, one.examples) for one in state.classes] == [
            ("blue", 3),
            ("green", 3),
            ("red", 3),
        ]
        session.accept(
            [one.id for one in session.pictures(label="red", status="proposed").pictures]
        )
    after = {name: one for name, one in colors.tree().items() if ".protorect/labeling" not in name}
    assert after == before
    with LabelingSession.open(sorted_folder, cache=False) as session:
        assert session.state().classes[2].accepted > 0
    assert main(["undo", str(sorted_folder)]) == 0
