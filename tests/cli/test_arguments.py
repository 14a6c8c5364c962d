"""Options of commands that are made from descriptions of parameters."""

import argparse

import pytest

from protorect._utils.parameters import Parameters, parameter
from protorect.cli import main
from protorect.cli.arguments import add_parameters, given, parameters_text
from protorect.errors import OptionError
from protorect.training.config import TrainingConfig


class Sampling(Parameters):
    way: int = parameter(5, "Classes per episode.", minimum=2)
    shot: tuple[int, ...] = parameter((1, 5), "Support samples per class.", minimum=1)
    dirichlet: float | None = parameter(None, "Concentration; by default balanced.", above=0)
    query_set: str = parameter("all", "What 100 % of the queries are.", choices=("all", "half"))


@pytest.fixture
def parser():
    made = argparse.ArgumentParser()
    add_parameters(made, Sampling)
    return made


def test_only_what_is_given_is_returned(parser):
    assert given(parser.parse_args([]), Sampling) == {}
    line = "--way 7 --shot 3 --shot 2 --dirichlet 0.5 --query-set half"
    values = {"way": 7, "shot": (3, 2), "dirichlet": 0.5, "query_set": "half"}
    assert given(parser.parse_args(line.split()), Sampling) == values
    assert Sampling(**values).shot == (3, 2)


def test_the_help_has_meaning_range_and_default(parser):
    text = " ".join(parser.format_help().split())
    assert "--way N classes per episode (a whole number from 2 up; default 5)" in text
    assert "from 1 up; repeat for several; default 1 and 5)" in text
    assert "by default balanced (a number in 0 .. 1e+06, excluding 0)" in text
    assert "--query-set NAME what 100 % of the queries are (all, half; default all)" in text


def test_only_the_named_parameters_become_options():
    made = argparse.ArgumentParser()
    add_parameters(made, Sampling, "way")
    assert "--shot" not in made.format_help()
    with pytest.raises(OptionError, match="Did you mean 'way'"):
        add_parameters(made, Sampling, "ways")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--way", "1"], "--way is 1; it must be a whole number from 2 up."),
        (["--way", "many"], "--way=many: a whole number is expected."),
        (["--shot", "1", "--shot", "0"], "--shot is 0; it must be a whole number from 1 up."),
        (["--dirichlet", "nan"], "--dirichlet is nan; it must lie in 0 .. 1e+06, excluding 0"),
        (["--query-set", "hal"], "unknown --query-set 'hal'. Did you mean 'half'?"),
    ],
)
def test_a_bad_value_is_one_sentence(parser, words, message):
    with pytest.raises(OptionError) as error:
        parser.parse_args(words)
    assert str(error.value).startswith(message)


def test_every_setting_is_in_the_help_of_train(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = capsys.readouterr().out
    assert parameters_text(TrainingConfig) in shown
    for one in TrainingConfig.parameters():
        assert f"\n  {one.name}=" in shown
        assert one.constraint.allowed in shown
        assert one.description in " ".join(shown.split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train p --out r --backbone conv65", "unknown --backbone 'conv65'. Did you mean 'conv64'"),
        ("train p --out r --set epoch=3", "unknown setting 'epoch'. Did you mean 'epochs'?"),
        ("train p --out r --set momentum=nan", "momentum is nan; it must lie in 0 .. 1"),
        (
            "prepare folder r --out p --size 4",
            "--size is 4; it must be a whole number in 8 .. 1024",
        ),
        (
            "prepare folder r --out p --workers 0",
            "--workers is 0; it must be a whole number from 1",
        ),
        ("prepare folder r --out p --seed x", "--seed=x: a whole number is expected"),
        ("demo --episodes 0", "--episodes is 0; it must be a whole number from 1 up"),
        ("paper cub --seed -1", "--seed is -1; it must be a whole number from 0 up"),
    ],
)
def test_a_mistake_on_the_command_line_has_exit_code_2(
    line, message, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"protorect: {message}")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_messages_of_options_do_not_mention_none(parser):
    with pytest.raises(OptionError, match=r"it must lie in 0 \.\. 1e\+06, excluding 0\.$"):
        parser.parse_args(["--dirichlet", "0"])
    assert given(parser.parse_args(["--dirichlet", "none"]), Sampling) == {"dirichlet": None}
