"""The experiments of `experiments.toml`, and how one is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from protorect._utils.progress import Progress
from protorect.errors import unknown_name
from protorect.methods import PICTURE_METHODS
from protorect.paper.feature_sets import FeatureFolder, FeatureSet
from protorect.paper.figure_data import figure_data
from protorect.paper.measure import EPISODES, Job, Measurements, Setting, accuracy, fine_tuning
from protorect.paper.published import load_toml
from protorect.paper.record import Measurement, Record
from protorect.paper.robust import robustness
from protorect.paper.weighting import weighting

_MEASURES: dict[str, Callable[[Job], Measurements]] = {
    "accuracy": accuracy,
    "fine_tuning": fine_tuning,
    "robustness": robustness,
    "figure_data": figure_data,
    "weighting": weighting,
}


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, or of our own; its fields are those of `experiments.toml`."""

    name: str
    title: str
    protocol: str
    tables: Sequence[int]
    methods: Sequence[str]
    settings: Sequence[Setting]
    measure: str = "accuracy"
    more_tables: Sequence[int] = ()

    @property
    def shown_tables(self) -> list[int]:
        """The tables of the paper in this experiment's section."""
        return [*self.tables, *self.more_tables]

    @property
    def picture_methods(self) -> list[str]:
        """The methods that need the network and its pictures."""
        return [name for name in self.methods if name in PICTURE_METHODS]

    @property
    def feature_sets(self) -> list[FeatureSet]:
        """The feature sets of the settings, each once."""
        return list(dict.fromkeys(setting.feature_set for setting in self.settings))


def _experiment(settings: list[dict[str, Any]], **fields: Any) -> Experiment:
    """An experiment from its fields in the TOML file."""
    every = [setting for group in settings for setting in _settings(**group)]
    return Experiment(settings=every, **fields)


def _settings(
    datasets: list[str],
    backbones: list[str],
    ways: Sequence[int] = (5,),
    distractors: Sequence[int] = (0,),
    episodes: int = EPISODES,
) -> list[Setting]:
    """Every combination of data sets, backbones, ways and numbers of distractor classes."""
    return [
        Setting(FeatureSet(dataset, backbone), way, episodes, number)
        for dataset, backbone, way, number in product(datasets, backbones, ways, distractors)
    ]


EXPERIMENTS = {
    fields["name"]: _experiment(**fields) for fields in load_toml("experiments.toml")["experiment"]
}


def experiment(name: str) -> Experiment:
    """Look up an experiment; an unknown name is an error that suggests the nearest."""
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


def run(
    chosen: Experiment,
    folder: FeatureFolder,
    *,
    episodes: int | None = None,
    fine_tuned: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Record | None:
    """Run an experiment on the feature sets that are in the folder; None if there are none.

    `episodes` limits the episodes of every setting, `fine_tuned` those that networks are fine-tuned
    on; without them, the numbers of the protocol hold.
    """
    start = time.perf_counter()
    numbers: list[Measurement] = []
    files, figures = [], {}
    for feature_set in chosen.feature_sets:
        if folder.missing_splits(feature_set):
            continue
        val, test = folder.load(feature_set)
        settings = [
            replace(
                setting,
                episodes=min(setting.episodes, episodes or setting.episodes),
                fine_tuned=fine_tuned or setting.fine_tuned,
            )
            for setting in chosen.settings
            if setting.feature_set == feature_set
        ]
        job = Job(val, test, folder, chosen.methods, settings, seed, progress)
        measured = _MEASURES[chosen.measure](job)
        numbers += measured.numbers
        files += [val.provenance(), test.provenance()]
        if measured.figure_data:
            figures[feature_set.name] = measured.figure_data
    if not files:
        return None
    record = Record(
        experiment=chosen.name,
        seed=seed,
        seconds=time.perf_counter() - start,
        features=tuple(files),
        measured=tuple(numbers),
        figure_data=figures,
    )
    return Record.from_json(record.to_json())  # rounded as in the file
