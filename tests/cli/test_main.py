"""The choice of the command, and what the help imports."""

import subprocess
import sys
from pathlib import Path

import pytest

import protorect.cli
from protorect.cli import COMMANDS, main

HELPERS = {"__init__", "arguments", "browser", "output", "progress", "terminal"}


def run_help(*arguments):
    """Run the help in a new process; its output, and the modules it has imported."""
    code = (
        "import sys\nfrom protorect.cli import main\n"
        f"try: main({arguments!r})\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, set(done.stderr.split())


def test_every_module_is_a_command_and_every_command_a_module():
    modules = {path.stem for path in Path(protorect.cli.__file__).parent.glob("*.py")}
    assert modules - HELPERS == set(COMMANDS)


def test_the_help_names_all_commands_and_imports_none_of_them():
    text, modules = run_help("--help")
    for name, summary in COMMANDS.items():
        assert f"\n    {name} " in text
        assert summary.split(":")[0].split(";")[0] in " ".join(text.split())
        assert f"protorect.cli.{name}" not in modules
    assert not {"torch", "sklearn", "matplotlib", "numpy", "rich"} & modules


def test_the_version_imports_nothing_heavy():
    text, modules = run_help("--version")
    assert text == f"protorect {protorect.__version__}\n"
    assert "torch" not in modules


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: protorect {name}")
    assert len(shown.splitlines()) >= 5


def test_the_help_of_a_command_imports_no_other_command():
    _, modules = run_help("datasets", "--help")
    assert {name for name in COMMANDS if f"protorect.cli.{name}" in modules} == {"datasets"}
    assert "torch" not in modules


@pytest.mark.parametrize("arguments", [["evaluate"], ["evalute", "good.npz"], []])
def test_a_command_line_that_is_not_understood(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: protorect" in capsys.readouterr().err
