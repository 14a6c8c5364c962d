"""Accuracies by the paper's protocol: Z chosen on validation classes, then the test classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from protorect._utils.progress import Progress
from protorect.errors import OptionError, ProtorectError
from protorect.evaluation.episodes import Episodes, sample_episodes
from protorect.evaluation.select_z import Choice, choose_z, evaluate_chosen, z_text
from protorect.paper.published import SHOTS
from protorect.paper.record import Measured
from protorect.paper.sources import FeatureFile, Source, SourceFeatures

QUERY = 15
EPISODES = 600
FINE_TUNED_EPISODES = 100  # each trains a network: seconds for small ones, minutes for large ones
VALIDATION_WAY = 200  # at most: more costs much and, with Omniglot's 688 classes, soon ends
MANY_WAYS = 100  # from here on an episode holds so many queries that few episodes do
FEW_EPISODES = 30


@dataclass(frozen=True)
class Setting:
    """Episodes of one source: their ways, how many, and their distractor classes.

    Of the episodes, networks are fine-tuned on the first `fine_tuned` only.
    """

    source: Source
    way: int = 5
    episodes: int = EPISODES
    distractors: int = 0
    fine_tuned: int = FINE_TUNED_EPISODES

    @property
    def validation(self) -> tuple[int, int]:
        """Ways and number of the episodes that Z is chosen on."""
        most = EPISODES if self.way < MANY_WAYS else FEW_EPISODES
        return min(self.way, VALIDATION_WAY), min(self.episodes, most)


@dataclass
class Findings:
    """What was measured on one source, and what figures of it are drawn from."""

    measured: list[Measured] = field(default_factory=list)
    drawings: dict[str, Any] = field(default_factory=dict)


def accuracies(
    features: SourceFeatures,
    methods: Sequence[str],
    settings: Sequence[Setting],
    seed: int,
    progress: Progress | None,
) -> Findings:
    """Accuracy of each method in each setting, at 1 and 5 shots, with the Z chosen for it."""
    found = Findings()
    chosen: dict[tuple[int, int], list[Choice]] = {}  # settings may share their validation
    for setting in settings:
        if setting.validation not in chosen:
            chosen[setting.validation] = chosen_z(features, methods, setting, seed, progress)
        choices = chosen[setting.validation]
        results = evaluate_chosen(
            features.test.features,
            features.test.labels,
            methods,
            choices,
            shot=SHOTS,
            episodes=drawn(features.test, setting, seed),
            progress=progress,
        )
        found.measured += [
            measured(setting, one.method, one.shot, one.accuracy, one.ci95, choices)
            for one in results
        ]
    return found


def chosen_z(
    features: SourceFeatures,
    methods: Sequence[str],
    setting: Setting,
    seed: int,
    progress: Progress | None = None,
) -> list[Choice]:
    """Z for each method and shot, from validation episodes without distractors."""
    way, episodes = setting.validation
    try:
        return choose_z(
            features.val.features,
            features.val.labels,
            methods,
            shot=SHOTS,
            way=min(way, len(np.unique(features.val.labels))),
            query=QUERY,
            episodes=episodes,
            seed=seed,
            progress=progress,
        )
    except ProtorectError as error:
        raise OptionError(f"{features.val.name}: {error}") from error


def drawn(file: FeatureFile, setting: Setting, seed: int) -> Episodes:
    """The test episodes of a setting, with the most shots."""
    try:
        return sample_episodes(
            file.labels,
            way=setting.way,
            shot=max(SHOTS),
            query=QUERY,
            episodes=setting.episodes,
            seed=seed,
            distractors=setting.distractors,
        )
    except ProtorectError as error:
        raise OptionError(f"{file.name}: {error}") from error


def measured(
    setting: Setting,
    method: str,
    shot: int,
    value: float,
    ci95: float,
    choices: Sequence[Choice] = (),
    quantity: str = "accuracy",
) -> Measured:
    """One number with all that it is of."""
    z = [z_text(one.z) for one in choices if (one.method, one.shot) == (method, shot)]
    return Measured(
        setting.source.dataset,
        setting.source.backbone,
        method,
        setting.way,
        shot,
        QUERY,
        setting.episodes,
        value,
        None if np.isnan(ci95) else ci95,
        z[0] if z else None,
        setting.distractors,
        quantity,
    )
