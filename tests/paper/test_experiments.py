"""The experiments of `experiments.toml`, and running one."""

from protorect.paper.experiments import EXPERIMENTS, MeasurementOptions, experiment, run
from protorect.paper.feature_sets import FeatureFolder, FeatureSet


def test_an_experiment_runs_on_the_features_that_exist(features):
    record = run(experiment("omniglot"), FeatureFolder(features), MeasurementOptions(episodes=5))
    assert {one.backbone for one in record.measured} == {"conv64"}
    assert {one.episodes for one in record.measured} == {5}
    assert [one["split"] for one in record.features] == ["val", "test"]
    assert run(experiment("main"), FeatureFolder(features)) is None


def test_every_table_belongs_to_one_experiment():
    tables = [number for one in EXPERIMENTS.values() for number in one.tables]
    assert sorted(tables) == list(range(1, 15))


def test_higher_way_has_the_published_ways_of_omniglot_with_fewer_episodes_for_many_ways():
    conv64 = FeatureSet("omniglot", "conv64")
    settings = [one for one in EXPERIMENTS["higher-way"].settings if one.feature_set == conv64]
    episodes = {one.way: one.episodes for one in settings}
    assert episodes == {10: 600, 20: 600, 50: 600, 200: 100, 1000: 50}
    assert {one.way: one.validation for one in settings}[1000] == (200, 30)
