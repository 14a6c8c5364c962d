"""Small files that claim to be huge, given to the commands."""

import pytest

from campaign import bombs

QUICK = ("npz", "pickle", "zip", "ONNX, claimed input")


def test_the_quick_ones_stay_within_the_budget(monkeypatch):
    chosen = [one for one in bombs.BOMBS if one.name in QUICK]
    monkeypatch.setattr(bombs, "BOMBS", chosen)
    measured = bombs.run(300)
    assert measured["failures"] == []
    assert list(measured["bombs"]) == list(QUICK)
    table = bombs.tables(measured)["bombs"]
    assert [row[-1] for row in table.rows] == ["refused"] * len(QUICK)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"code": 0}, "exit code 0"),
        ({"megabytes": 10**4}, "10000 MB"),
        ({"seconds": 1e3}, "1000.0 seconds"),
        ({"message": "Traceback"}, "traceback"),
    ],
)
def test_what_counts_as_a_failure(found, words):
    fine = {"code": 2, "megabytes": 1, "seconds": 1.0, "message": ""}
    bomb = bombs.Bomb("x", lambda root: None, "", (2,))
    assert list(bombs._problems(bomb, fine)) == []
    assert words in " ".join(bombs._problems(bomb, fine | found))
