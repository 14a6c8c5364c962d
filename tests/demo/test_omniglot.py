"""The Omniglot row of the demonstration is that of the committed results."""

import json
from pathlib import Path

import pytest

from protorect.demo.omniglot import METHODS, DemoOptions, measure_omniglot, pack_drawings
from protorect.paper.published import SHOTS
from protorect.sorting.sort import no_progress

RESULTS = Path(__file__).parents[2] / "results"


def test_the_drawings_are_packed_as_by_prepare(tmp_path):
    record = json.loads((RESULTS / "paper" / "omniglot.json").read_text())
    (prepared,) = {one["pictures"] for one in record["features"] if one["split"] == "test"}
    packed = pack_drawings(tmp_path)
    assert packed.split("test").digest == prepared
    assert packed.splits == ("test",)


def test_the_row_lies_within_the_interval_of_the_results():
    record = json.loads((RESULTS / "omniglot-conv64.json").read_text())
    expected = {(one["method"], one["shot"]): one for one in record["results"]}
    measured = measure_omniglot(DemoOptions(), no_progress).results
    assert set(measured) == {(name, shot) for name in METHODS for shot in SHOTS}
    for key in set(measured) & set(expected):
        assert measured[key].accuracy == pytest.approx(
            expected[key]["accuracy"], abs=expected[key]["ci95"]
        )
    for shot in SHOTS:  # which has no Z: the same features and episodes
        cspn = expected["cspn", shot]["accuracy"]
        assert measured["cspn", shot].accuracy == pytest.approx(cspn, abs=0.02)
