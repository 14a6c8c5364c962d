"""Results of experiments as files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from protorect.errors import DataError
from protorect.paper.experiments import MeasurementOptions, experiment, run
from protorect.paper.feature_sets import FeatureFolder
from protorect.paper.record import earlier_record, load_records

MEASURED = json.loads(Path("results/paper/omniglot.json").read_text())
MEASURED |= {"measured": MEASURED["measured"][:2], "features": MEASURED["features"][:1]}


def test_results_are_loaded_as_they_were_saved(features, tmp_path):
    folder = FeatureFolder(features)
    few = MeasurementOptions(episodes=2)
    records = [run(experiment(name), folder, few) for name in ("omniglot", "weights")]
    paths = [record.save(tmp_path) for record in records]
    assert [path.name for path in paths] == ["omniglot.json", "weights.json"]
    assert load_records(tmp_path) == records
    assert records[0].measured
    assert set(records[1].figure_data) == {"omniglot-conv64", "cub-conv64"}


def test_numbers_of_features_that_are_not_there_are_kept(features, tmp_path):
    few, cub = MeasurementOptions(episodes=2), "cub-conv64"
    both = run(experiment("weights"), FeatureFolder(features), few)
    for split in ("val", "test"):
        (tmp_path / f"{cub}-{split}.npz").symlink_to(features / f"{cub}-{split}.npz")
    again = run(experiment("weights"), FeatureFolder(tmp_path), MeasurementOptions(episodes=3))
    assert again.feature_sets == [cub]
    joined = again.with_earlier(replace(both, versions={"torch": "1.0"}))
    assert set(joined.feature_sets) == {cub, "omniglot-conv64"}
    assert {(one.feature_set, one.episodes) for one in joined.measured} == {
        (cub, 3),
        ("omniglot-conv64", 2),
    }
    assert joined.figure_data[cub] == again.figure_data[cub]
    assert joined.figure_data["omniglot-conv64"] == both.figure_data["omniglot-conv64"]
    assert joined.versions["torch"] == f"1.0, {again.versions['torch']}"
    assert again.with_earlier(again) == again


def test_results_of_another_seed_are_not_joined(features, tmp_path):
    record = run(experiment("weights"), FeatureFolder(features), MeasurementOptions(episodes=2))
    record.save(tmp_path)
    assert earlier_record(tmp_path, "weights", 0) == record
    assert earlier_record(tmp_path, "omniglot", 1) is None
    with pytest.raises(DataError, match="was measured with seed 0, not 1. Give that --seed"):
        earlier_record(tmp_path, "weights", 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seconds": None}, "seconds is None; it must be a finite number"),
        ({"measured": [{}]}, r"measured\[0\]\..* is missing"),
        ({"measured": [MEASURED["measured"][0] | {"way": 2.5}]}, r"measured\[0\]\.way is 2\.5"),
        ({"features": [{"file": 1}]}, r"features\[0\]\.file is 1; it must be text"),
        (
            {"drawings": {"omniglot-conv64": 1}},
            "drawings.omniglot-conv64 is 1; it must be an object",
        ),
        ({"versions": {"torch": 2}}, "versions.torch is 2; it must be text"),
    ],
)
def test_a_damaged_result_is_refused(tmp_path, changes, message):
    (tmp_path / "r.json").write_text(json.dumps(MEASURED | changes))
    with pytest.raises(DataError, match=rf"is not a result of .*: {message}.* Measure it again"):
        load_records(tmp_path)


@damaged_files
@given(damages(json.dumps(MEASURED).encode()))
def test_a_damaged_result_has_numbers_or_is_refused(tmp_path, content):
    def numbers(records):
        return all(isinstance(one.value, int | float) for r in records for one in r.measured)

    read_or_refused(tmp_path / "r.json", content, lambda _: load_records(tmp_path), numbers)
