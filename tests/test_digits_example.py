"""The example of docs/digits.md runs, with a shorter training."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[1] / "docs" / "digits.md").read_text("utf-8")


def test_the_example_trains_and_compares_the_methods(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    shorter = {"epochs=8": "epochs=1", "(2.4, 0.02), (8, 0)": "(1, 0)"}
    shorter |= {
        "steps_per_epoch=20": "steps_per_epoch=3",
        "shot=[1, 5]": "shot=[1, 5], episodes=20",
    }
    for long, short in shorter.items():
        assert code.count(long) == 1
        code = code.replace(long, short)
    variables = {}
    exec(compile(code, "digits.md", "exec"), variables)
    assert {one.way for one in variables["results"]} == {5}
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [name, f"{shot}-shot"] for shot in (1, 5) for name in ("cspn", "bd-cspn", "bd-cspn-classes")
    ]
