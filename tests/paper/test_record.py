"""Results of experiments as files."""

from protorect.paper.experiments import MeasurementOptions, experiment, run
from protorect.paper.feature_sets import FeatureFolder
from protorect.paper.record import load_records


def test_results_are_loaded_as_they_were_saved(features, tmp_path):
    folder = FeatureFolder(features)
    few = MeasurementOptions(episodes=2)
    records = [run(experiment(name), folder, few) for name in ("omniglot", "weights")]
    paths = [record.save(tmp_path) for record in records]
    assert [path.name for path in paths] == ["omniglot.json", "weights.json"]
    assert load_records(tmp_path) == records
    assert records[0].measured
    assert set(records[1].figure_data) == {"omniglot-conv64", "cub-conv64"}
