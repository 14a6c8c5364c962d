"""Accuracies by the paper's protocol: choose Z on validation classes, evaluate on test classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from protorect._utils.progress import Progress
from protorect.errors import naming
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.evaluate import choose_z, evaluate, evaluate_chosen
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.result import Result
from protorect.evaluation.sampling import sample_episodes
from protorect.evaluation.select_z import Choice, z_text
from protorect.methods import PICTURE_METHODS, chosen_methods
from protorect.paper.feature_sets import FeatureFile, FeatureFolder, FeatureSet
from protorect.paper.published import SHOTS
from protorect.paper.record import Measurement

QUERY = 15
EPISODES = 600
FINE_TUNED_EPISODES = 100  # each trains a network: seconds for small ones, minutes for large ones
VALIDATION_WAY = 200  # at most: more ways are slow, and Omniglot has 688 validation classes
VALIDATION_CLASSES = 5 * EPISODES  # in all validation episodes: with more ways fewer hold enough
FEWEST_EPISODES = 30

Measured = tuple[list[Measurement], dict[str, Any]]  # numbers, and the data of figures


@dataclass(frozen=True)
class Setting:
    """The episodes of one measurement: features, ways, number of episodes, distractor classes."""

    feature_set: FeatureSet
    way: int = 5
    episodes: int = EPISODES
    distractors: int = 0

    @property
    def validation(self) -> tuple[int, int]:
        """Ways and number of the episodes that Z is chosen on."""
        way = min(self.way, VALIDATION_WAY)
        enough = max(VALIDATION_CLASSES // way, FEWEST_EPISODES)
        return way, min(self.episodes, enough, EPISODES)

    def measurement(
        self,
        method: str,
        shot: int,
        value: float,
        ci95: float,
        chosen: Mapping[str, Any] | None = None,
        quantity: str = "accuracy",
    ) -> Measurement:
        """The measurement of a method in this setting, with the options chosen for it."""
        dataset, backbone, run = self.feature_set
        return Measurement(
            dataset,
            backbone,
            method,
            self.way,
            shot,
            QUERY,
            self.episodes,
            value=value,
            ci95=None if np.isnan(ci95) else ci95,
            z=z_text(chosen["z"]) if chosen else None,
            distractors=self.distractors,
            quantity=quantity,
            run=run,
        )

    def measured(self, result: Result) -> Measurement:
        """The accuracy of a method in this setting."""
        estimate = result.accuracy, result.ci95
        return self.measurement(result.method, result.shot, *estimate, result.chosen)


@dataclass(frozen=True)
class Known:
    """What several experiments have in common, measured once."""

    accuracies: dict[tuple[Setting, str], list[Measurement]] = field(default_factory=dict)
    choices: dict[tuple[FeatureSet, tuple[int, int], str], list[Choice]] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class Job:
    """What an experiment measures on one feature set."""

    val: FeatureFile
    test: FeatureFile
    folder: FeatureFolder  # where the pictures are
    methods: Sequence[str]
    settings: Sequence[Setting]
    seed: int = 0
    fine_tuned: int = FINE_TUNED_EPISODES  # number of episodes in which networks are fine-tuned
    progress: Progress | None = None
    known: Known = field(default_factory=Known)

    @property
    def table(self) -> FeatureTable:
        """The test features on a device, with their labels."""
        return FeatureTable.of(self.test.features, self.test.labels)

    def choose_z(self, setting: Setting) -> list[Choice]:
        """Choose Z for each method and shot on validation episodes without distractors."""
        keys = {name: (setting.feature_set, setting.validation, name) for name in self.methods}
        new = [name for name, key in keys.items() if key not in self.known.choices]
        if new:
            way, episodes = setting.validation
            with naming(self.val.name):
                chosen = choose_z(
                    self.val.features,
                    self.val.labels,
                    new,
                    groups=self.val.groups,
                    shot=SHOTS,
                    way=min(way, len(np.unique(self.val.labels))),
                    query=QUERY,
                    episodes=episodes,
                    seed=self.seed,
                    progress=self.progress,
                )
            for name in new:
                self.known.choices[keys[name]] = [one for one in chosen if one.method == name]
        return [one for key in keys.values() for one in self.known.choices[key]]

    def sample_episodes(self, setting: Setting) -> Episodes:
        """Sample the test episodes of a setting, with the most shots."""
        with naming(self.test.name):
            return sample_episodes(
                self.test.labels,
                way=setting.way,
                shot=max(SHOTS),
                query=QUERY,
                episodes=setting.episodes,
                seed=self.seed,
                distractors=setting.distractors,
                groups=self.test.groups,
            )


def accuracy(job: Job) -> Measured:
    """Accuracy of each method in each setting, at 1 and 5 shots, with the Z chosen for it."""
    known, table = job.known.accuracies, job.table
    for setting in job.settings:
        new = [name for name in job.methods if (setting, name) not in known]
        if new:
            choices = replace(job, methods=new).choose_z(setting)
            episodes, methods = job.sample_episodes(setting), chosen_methods(new)
            results = evaluate_chosen(table, methods, choices, SHOTS, episodes, job.progress)
            for one in results:
                known.setdefault((setting, one.method), []).append(setting.measured(one))
    wanted = [(setting, name) for setting in job.settings for name in job.methods]
    return [number for one in wanted for number in known[one]], {}


def fine_tuning(job: Job) -> Measured:
    """`accuracy`, and that of fine-tuned networks where their run and pictures exist.

    These are measured on fewer episodes; the figure data has their paired difference to CSPN.
    """
    on_features = [name for name in job.methods if name not in PICTURE_METHODS]
    on_pictures = [name for name in job.methods if name in PICTURE_METHODS]
    numbers, differences = accuracy(replace(job, methods=on_features))
    for setting in job.settings:
        if not job.folder.has_pictures(setting.feature_set):
            continue
        fewer = replace(setting, episodes=min(setting.episodes, job.fine_tuned))
        results = evaluate(
            job.table,
            methods=["cspn", *on_pictures],
            shot=SHOTS,
            episodes=job.sample_episodes(setting).first(fewer.episodes),
            pictures=job.folder.pictures(setting.feature_set),
            progress=job.progress,
        )
        cspn = {one.shot: one for one in results if one.method == "cspn"}
        for one in results:
            if one.method in on_pictures:
                numbers.append(fewer.measured(one))
                by_shot = differences.setdefault(one.method, {"episodes": one.episodes})
                by_shot[str(one.shot)] = one.minus(cspn[one.shot])._asdict()
    return numbers, differences
