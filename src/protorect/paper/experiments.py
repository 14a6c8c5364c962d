"""The experiments of `experiments.toml`, and how one is run."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from protorect._utils.parameters import Parameters, parameter
from protorect._utils.progress import Progress
from protorect.errors import unknown_name
from protorect.methods import PICTURE_METHODS
from protorect.paper.feature_sets import FeatureFolder, FeatureSet
from protorect.paper.figures import figure_data
from protorect.paper.measure import (
    EPISODES,
    FINE_TUNED_EPISODES,
    Job,
    Known,
    Setting,
    accuracy,
    fine_tuning,
)
from protorect.paper.published import load_toml
from protorect.paper.record import Measurement, Record
from protorect.paper.robust import robustness
from protorect.paper.weighting import weighting

_MEASURES = {
    one.__name__: one for one in (accuracy, fine_tuning, robustness, figure_data, weighting)
}


META_DATASET = "meta-dataset"  # the experiment whose networks the user may choose


class MeasurementOptions(Parameters):
    """How many episodes of an experiment are measured."""

    episodes: int | None = parameter(
        None, "Largest number of episodes; by default as in the experiment.", minimum=2
    )
    fine_tuned_episodes: int = parameter(
        FINE_TUNED_EPISODES, "Number of episodes in which networks are fine-tuned.", minimum=2
    )
    seed: int = parameter(0, "Random seed of the episodes.")


DEFAULT_OPTIONS = MeasurementOptions()


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
    same_network: str = ""
    versions: Sequence[str] = ()
    remark: str = ""

    @property
    def picture_methods(self) -> list[str]:
        """The methods that need the network and its pictures."""
        return [name for name in self.methods if name in PICTURE_METHODS]

    @property
    def feature_sets(self) -> list[FeatureSet]:
        """The feature sets of the settings, each once."""
        return list(dict.fromkeys(setting.feature_set for setting in self.settings))


def _settings(
    datasets: list[str],
    backbones: list[str],
    ways: Sequence[int] = (5,),
    distractors: Sequence[int] = (0,),
    runs: Sequence[str] = ("",),
    episodes: int = EPISODES,
) -> list[Setting]:
    """Every combination of data sets, backbones, runs, ways and numbers of distractor classes."""
    sets = [FeatureSet(*names) for names in product(datasets, backbones, runs)]
    return [Setting(one, way, episodes, n) for one, way, n in product(sets, ways, distractors)]


EXPERIMENTS = {
    fields["name"]: Experiment(
        **fields | {"settings": [one for group in fields["settings"] for one in _settings(**group)]}
    )
    for fields in load_toml("experiments.toml")["experiment"]
}


def with_networks(chosen: Experiment, names: Sequence[str]) -> Experiment:
    """The experiment on Meta-Dataset with other networks; any other experiment as it is."""
    if chosen.name != META_DATASET:
        return chosen
    datasets = list(dict.fromkeys(one.feature_set.dataset for one in chosen.settings))
    return replace(chosen, settings=_settings(datasets, list(names)))


def experiment(name: str) -> Experiment:
    """Look up an experiment; an unknown name is an error that suggests the nearest."""
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


def run(
    chosen: Experiment,
    folder: FeatureFolder,
    options: MeasurementOptions = DEFAULT_OPTIONS,
    progress: Progress | None = None,
    known: Known | None = None,
) -> Record | None:
    """Run an experiment on the feature sets that are in the folder; None if there are none.

    `known` is what earlier experiments measured in the same folder with the same options.
    """
    known = Known() if known is None else known
    start = time.perf_counter()
    numbers: list[Measurement] = []
    files, figures = [], {}
    for feature_set in chosen.feature_sets:
        if folder.missing_splits(feature_set):
            continue
        val, test = folder.load(feature_set)
        settings = [
            replace(setting, episodes=min(setting.episodes, options.episodes or setting.episodes))
            for setting in chosen.settings
            if setting.feature_set == feature_set
        ]
        limits = options.seed, options.fine_tuned_episodes
        job = Job(val, test, folder, chosen.methods, settings, *limits, progress, known)
        measured, data = _MEASURES[chosen.measure](job)
        trained_on = folder.trained_on(feature_set, test)
        numbers += [replace(one, trained_on=trained_on) for one in measured]
        read = (val.provenance(), test.provenance())
        files += [one for one in read if one not in files]  # two data sets may share one
        if data:
            figures[feature_set.name] = data
    if not files:
        return None
    seconds = time.perf_counter() - start
    record = Record(chosen.name, options.seed, seconds, tuple(files), tuple(numbers), figures)
    return Record.from_content(record.content())  # rounded as in the file
