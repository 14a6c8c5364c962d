"""The README's Python blocks run, its commands are valid, its links exist."""

import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from helpers.sorting import COLORS, picture
from protorect import METHODS, save_features
from protorect.cli import _parse, main
from protorect.methods import PAPER, PICTURE_METHODS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands(program):
    """Arguments of every command of this program, in a block or in the text."""
    text = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    inline = [code.replace("\n", " ") for code in re.findall(r"`([^`]+)`", text)]
    lines = "\n".join(blocks("text") + blocks("console") + inline).splitlines()
    words = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [line[1:] for line in words if line[:1] == [program]]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a Python block in a folder with EXAMPLES and PHOTOS; returns its variables."""
    monkeypatch.chdir(tmp_path)
    for seed, (name, color) in enumerate(COLORS.items()):
        picture(tmp_path / "EXAMPLES" / name / "1.png", color, seed)
        picture(tmp_path / "PHOTOS" / f"{seed}.png", color, 10 + seed)

    def run(code):
        variables = {}
        exec(compile(code, "README.md", "exec"), variables)
        return variables

    return run


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_blocks_run(number, run):
    assert "protorect" in run(blocks("python")[number])


def test_pictures_are_labelled_as_data_frame(run):
    code = blocks("python")[0]
    assert code.count("protorect.sort_images") == 1
    frame = run(code.replace("protorect.sort_images", "frame = protorect.sort_images"))["frame"]
    assert sorted(frame["label"]) == sorted(COLORS)


def test_unlabeled_samples_are_classified(run):
    truth = np.repeat(["cat", "dog", "owl"], 100)
    assert (run(blocks("python")[1])["clf"].transduction_ == truth).mean() > 0.9


def test_installation_names_the_constraints_and_the_extra_of_data_frames():
    (arguments,) = commands("pip")
    options, (target,) = arguments[:-1], arguments[-1:]
    assert options == ["install", "-c", "constraints.txt"]
    assert (ROOT / "constraints.txt").exists()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert target == ".[pandas]"
    assert "pandas" in extras["optional-dependencies"]


@pytest.mark.parametrize("number", range(len(commands("protorect"))))
def test_commands_parse(number):
    assert callable(_parse(commands("protorect")[number]).run)


def test_console_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_features("features.npz", *load_digits(return_X_y=True))
    lines = re.findall(r"^\$ (.+)$", "\n".join(blocks("console")), flags=re.MULTILINE)
    assert lines
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "protorect"
        assert main(arguments) == 0


def test_the_table_of_methods_names_those_of_the_paper():
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", README, flags=re.MULTILINE))
    assert set(PAPER) <= set(rows) <= set(METHODS | PICTURE_METHODS)


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda page: page.name
)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
