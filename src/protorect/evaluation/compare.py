"""Comparison of methods on several feature sets in several settings, with their ranks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata, studentized_range

from protorect._utils.parameters import parameter
from protorect._utils.progress import Progress, part_of
from protorect.embedding.store import read_provenance
from protorect.errors import OptionError, naming
from protorect.evaluation.evaluate import SHOTS, evaluate, listed_shots
from protorect.evaluation.features import FeatureSource, FeatureTable, feature_table
from protorect.evaluation.own_method import Spec, resolve_methods
from protorect.evaluation.result import Result
from protorect.evaluation.sampling import Sampling
from protorect.methods import METHODS

ALPHA = 0.05  # of the critical difference
_DIGITS = 6  # of an accuracy in percent: 80.47999999999999 is 80.48


class ComparisonSampling(Sampling):
    """How the episodes of a comparison are sampled."""

    dirichlet: float = parameter(2.0, "Concentration where classes are unbalanced.")
    distractors: int = parameter(5, "Distractor classes where there are any.")


class Column(NamedTuple):
    """All methods on the same episodes of one feature set in one setting, at one shot."""

    features: str
    setting: str
    shot: int
    results: tuple[Result, ...]
    pictures: str = ""  # the first feature set made from the same pictures, if not itself

    @property
    def source(self) -> str:
        """Name of the pictures: columns with the same name are not independent."""
        return self.pictures or self.features


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results of all methods on all feature sets and settings."""

    methods: tuple[str, ...]  # in the order of the results
    columns: tuple[Column, ...]  # one for each feature set, setting and shot
    skipped: dict[str, str] = field(default_factory=dict)  # feature sets with too few classes

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """In percent, (columns, methods), rounded so that equal ones are equal."""
        accuracies = [[r.accuracy for r in column.results] for column in self.columns]
        return np.array(accuracies, dtype=np.float64).round(_DIGITS)

    @property
    def sources(self) -> list[str]:
        """The sets of pictures that the feature sets were made from."""
        return list(dict.fromkeys(column.source for column in self.columns))

    @property
    def ranks(self) -> NDArray[np.float64]:
        """Mean rank of every method, (methods,); 1 is the best, ties share.

        The mean over the sets of pictures of the mean over their columns.
        """
        ranks = rankdata(-self.accuracies, axis=1)
        of_source = [
            ranks[[column.source == source for column in self.columns]].mean(axis=0)
            for source in self.sources
        ]
        return np.asarray(np.mean(of_source, axis=0))

    @property
    def critical_difference(self) -> float:
        """Least significant difference of two mean ranks (Nemenyi's test, 5 %).

        Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets", 2006. Only sets of
        pictures count, because columns of the same pictures are not independent.
        """
        k, n = len(self.methods), len(self.sources)
        if k < 2:
            return 0.0
        quantile = studentized_range.ppf(1 - ALPHA, k, np.inf) / np.sqrt(2)
        return float(quantile * np.sqrt(k * (k + 1) / (6 * n)))

    @property
    def behind_best(self) -> NDArray[np.float64]:
        """Largest distance to the best method in any column, in points, (methods,)."""
        accuracies = self.accuracies
        return np.asarray((accuracies.max(axis=1, keepdims=True) - accuracies).max(axis=0))

    @property
    def episodes_per_second(self) -> NDArray[np.float64]:
        """Speed of every method over all columns, (methods,), without reading the features."""
        episodes = sum(column.results[0].episodes for column in self.columns)
        seconds = np.array([[r.seconds for r in column.results] for column in self.columns])
        return np.asarray(episodes / np.maximum(seconds.sum(axis=0), 1e-9))


def compare(
    tables: Mapping[str, FeatureSource | tuple[Any, ...]],
    methods: Spec | Iterable[Spec] = tuple(METHODS),
    *,
    way: int = 5,
    shot: int | Sequence[int] = SHOTS,
    query: int = 15,
    episodes: int = 600,
    seed: int = 0,
    dirichlet: float = 2.0,
    distractors: int = 5,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Run every method on the same episodes of every feature set in three settings.

    `tables` has each feature set by its name, as the path of a file or as (features, labels). The
    settings are balanced classes, classes in the proportions of a Dirichlet distribution, and
    balanced ones with distractor classes. The other arguments are those of `evaluate`. Files that
    `protorect extract` made from the same pictures count as one set of pictures in the ranks.

    Examples
    --------
    >>> import numpy as np, protorect
    >>> labels = np.arange(200) % 10
    >>> features = np.eye(10)[labels] + np.random.default_rng(0).normal(size=(200, 10)) / 20
    >>> found = protorect.compare({"toy": (features, labels)}, ["cspn", "bd-i"], episodes=10)
    >>> found.methods, len(found.columns), found.accuracies.shape
    (('cspn', 'bd-i'), 6, (6, 2))
    """
    if not isinstance(tables, Mapping) or not tables:
        raise OptionError(
            'tables must have one feature set or more by name, as in {"birds": "birds.npz"}; '
            f"got {'none' if isinstance(tables, Mapping) else type(tables).__name__}."
        )
    chosen, shots = resolve_methods(methods), listed_shots(shot, episodes)
    loaded = {}
    for name, given in tables.items():
        with naming(name):
            loaded[name] = feature_table(given, device)
    settings: dict[str, dict[str, Any]] = {  # how queries are sampled, by the name in tables
        "balanced": {},
        f"unbalanced (Dirichlet {dirichlet:g})": {"dirichlet": dirichlet},
        f"{distractors} distractor classes": {"distractors": distractors},
    }
    shared: dict[str, Any] = {"way": way, "shot": shots, "query": query, "episodes": episodes}
    shared |= {"seed": seed}
    in_setting = len(shots) * episodes
    pictures = _same_pictures(loaded)
    columns: list[Column] = []
    skipped: dict[str, str] = {}  # the reason, by feature set
    pairs = list(product(loaded, settings))
    for i, (name, setting) in enumerate(pairs):
        table = loaded[name]
        needed = way + settings[setting].get("distractors", 0)
        classes = len(np.unique(table.labels))
        if way <= classes < needed:
            reason = f"an episode needs {needed} classes, there are {classes}."
            skipped[name] = f"{name}, {setting}: {reason}"
            continue
        part = part_of(progress, i * in_setting, len(pairs) * in_setting)
        with naming(name):
            results = evaluate(table, None, chosen, **shared, **settings[setting], progress=part)
        columns += [
            Column(name, setting, k, tuple(r for r in results if r.shot == k), pictures[name])
            for k in shots
        ]
    return Comparison(tuple(one.name for one in chosen), tuple(columns), skipped)


def _same_pictures(tables: Mapping[str, FeatureTable]) -> dict[str, str]:
    """For every feature set the first one that was made from the same pictures."""
    first: dict[str, str] = {}
    origins = {}
    for name, table in tables.items():
        stored = {} if table.path is None else read_provenance(table.path)
        origins[name] = first.setdefault(str(stored.get("pictures", f"only {name}")), name)
    return origins
