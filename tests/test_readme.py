"""What the README shows works."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from protorect import METHODS, save_features
from protorect.cli import main
from protorect.methods import PAPER, PICTURE_METHODS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})


def test_the_first_block_labels_the_pile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(blocks("python")[0], "README.md", "exec"), names)
    truth = np.repeat(["cat", "dog", "owl"], 100)
    assert (names["clf"].transduction_ == truth).mean() > 0.9


def test_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_features("features.npz", *load_digits(return_X_y=True))
    commands = re.findall(r"^\$ (.+)$", "\n".join(blocks("console")), flags=re.MULTILINE)
    assert commands
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "protorect"
        assert main(arguments) == 0


def test_the_table_of_methods_names_those_of_the_paper():
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", README.read_text(), flags=re.MULTILINE))
    assert set(PAPER) <= set(rows) <= set(METHODS | PICTURE_METHODS)


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda p: p.name
)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
