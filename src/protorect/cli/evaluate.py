"""Compare methods on the same few-shot episodes, with 95 % intervals.

FEATURES is a .npz file with `features` (n, dim), `labels` (n,) and optionally `class_names`, or a
folder that `protorect extract` made; by default a class needs 20 rows, 5 shots and 15 queries.

`protorect methods` lists the methods and `protorect methods NAME` describes the options of one,
which are written after its name: bd-cspn:z=4,rank=softmax

tft fine-tunes the network for each episode, so it needs what made FEATURES: --network and
--pictures, as they were given to `protorect extract`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from protorect._utils.arrays import save_arrays
from protorect._utils.files import write_text
from protorect._utils.versions import versions
from protorect.cli.output import check_outputs, print_table
from protorect.cli.progress import progress_bar
from protorect.embedding.store import read_provenance
from protorect.errors import DataError, OptionError
from protorect.evaluation.episodes import Episodes, sample_episodes
from protorect.evaluation.evaluate import Result
from protorect.evaluation.features import load_features
from protorect.evaluation.fine_tuned import Pictures, evaluate_fine_tuned
from protorect.evaluation.select_z import Choice, choose_z, evaluate_chosen, z_text
from protorect.methods import (
    PAPER,
    PICTURE_METHODS,
    Method,
    PictureMethod,
    chosen_methods,
    chosen_with_pictures,
)
from protorect.methods.registry import ALL
from protorect.report.results import results_csv, results_json, results_table

SAMPLING = {"way": 5, "query": 15, "episodes": 600, "seed": 0, "dirichlet": None, "distractors": 0}
SHOTS = [1, 5]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("features", metavar="FEATURES", type=Path)
    add("--method", action="append", metavar="NAME", help="repeat; or all (the paper's five)")
    add("--way", type=int, help="classes in an episode (5)")
    add("--shot", type=int, action="append", help="support samples per class; repeat (1 and 5)")
    add("--query", type=int, help="queries per class (15)")
    add("--episodes", type=int, help="how many (600)")
    add("--seed", type=int, help="the same seed samples the same episodes (0)")
    add("--dirichlet", type=float, metavar="ALPHA", help="queries per class from Dirichlet(ALPHA)")
    add("--distractors", type=int, metavar="CLASSES", help="add queries of this many other classes")
    file = parser.add_mutually_exclusive_group().add_argument
    file("--load-episodes", type=Path, metavar="F.npz", help="use these episodes and their shots")
    file("--save-episodes", type=Path, metavar="F.npz", help="write the episodes to this file")
    add("--validation", type=Path, metavar="F.npz", help="choose Z per method and shot on these")
    add("--json", type=Path, metavar="OUT.json", help="write the results")
    add("--csv", type=Path, metavar="OUT.csv", help="write the results")
    add("--predictions", type=Path, metavar="F.npz", help="write predicted classes, 0 .. way - 1")
    add("--base", type=Path, metavar="F.npz", help="base classes, whose mean simpleshot subtracts")
    add("--network", metavar="RUN", help="for tft: the run or weights that made the features")
    add("--pictures", type=Path, metavar="PACKED", help="for tft: the pictures of the features")
    add("--device", help="where to compute, as a torch device (cpu)")


def run(options: argparse.Namespace) -> None:
    """Evaluate, print a table, and write the requested files."""
    methods = _methods(options)
    check_outputs(
        (options.save_episodes, options.json, options.csv, options.predictions),
        (options.features, options.load_episodes, options.validation, options.base),
    )
    pictures = None
    if options.network is not None:
        pictures = Pictures.behind(options.features, options.network, options.pictures)
    if options.base is not None:
        methods = _with_base_mean(methods, load_features(options.base)[0])
    features, labels = load_features(options.features)
    episodes = _episodes(options, labels)
    shots = options.shot or ([episodes.shot] if options.load_episodes else SHOTS)
    choices = _choose_z(options, methods, episodes, shots)

    results: list[Result] = []
    shared: dict[str, Any] = {"shot": shots, "episodes": episodes, "device": options.device}
    if on_features := _on_features(methods):
        with progress_bar("episodes") as progress:
            results += evaluate_chosen(
                features, labels, on_features, choices, progress=progress, **shared
            )
    if pictures is not None:
        with progress_bar("fine-tuned episodes") as progress:
            on_pictures = _on_pictures(methods)
            results += evaluate_fine_tuned(pictures, on_pictures, progress=progress, **shared)
    order = [method.name for method in methods]
    results.sort(key=lambda result: (shots.index(result.shot), order.index(result.method)))

    title = f"{options.features.name}: {episodes.way}-way, {len(episodes)} episodes, accuracy in %"
    # Before the files, so that the results are shown even if a file cannot be written.
    print_table(results_table(results, title))
    for choice in choices:
        print(f"{choice.method}, {choice.shot}-shot: Z = {z_text(choice.z)}")
    if options.save_episodes is not None:
        episodes.save(options.save_episodes)
    if options.json is not None:
        write_text(options.json, results_json(results, _settings(options, episodes, choices)))
    if options.csv is not None:
        write_text(options.csv, results_csv(results))
    if options.predictions is not None:
        predictions = {f"{r.method}, {r.shot}-shot": r.predictions for r in results}
        save_arrays(options.predictions, **predictions)


def _methods(options: argparse.Namespace) -> Sequence[Method | PictureMethod]:
    """The chosen methods; those that fine-tune on pictures need --network and --pictures."""
    names, on_pictures = options.method or PAPER, ", ".join(PICTURE_METHODS)
    if (options.network is None) != (options.pictures is None):
        raise OptionError(
            "--network and --pictures go together: the network that made the features, and the "
            "packed pictures they are of."
        )
    if options.network is None:
        if ALL in names:
            print(f"left out: {on_pictures}, without --network and --pictures", file=sys.stderr)
        return chosen_methods(names)
    methods = chosen_with_pictures(names)
    if not _on_pictures(methods):
        raise OptionError(
            f"--network and --pictures are for {on_pictures}, which is not among the methods."
        )
    return methods


def _on_features(methods: Sequence[Method | PictureMethod]) -> list[Method]:
    return [method for method in methods if isinstance(method, Method)]


def _on_pictures(methods: Sequence[Method | PictureMethod]) -> list[PictureMethod]:
    return [method for method in methods if isinstance(method, PictureMethod)]


def _with_base_mean(
    methods: Sequence[Method | PictureMethod], base: NDArray[Any]
) -> list[Method | PictureMethod]:
    """The methods; those with the option base_mean get the mean of the base classes."""
    if not any(hasattr(method.options, "base_mean") for method in methods):
        raise OptionError("--base is for simpleshot, which is not among the methods.")
    if base.ndim != 2 or len(base) == 0:
        raise DataError(f"--base needs features (n, dim), the file has shape {base.shape}.")
    mean = base.mean(axis=0, dtype="float64")
    return [
        method.with_options(base_mean=mean) if hasattr(method.options, "base_mean") else method
        for method in methods
    ]


def _sampling(options: argparse.Namespace) -> dict[str, Any]:
    """The options of the sampling of episodes, with their defaults."""
    values = {name: getattr(options, name) for name in SAMPLING}
    return {name: SAMPLING[name] if value is None else value for name, value in values.items()}


def _episodes(options: argparse.Namespace, labels: NDArray[Any]) -> Episodes:
    """Load or sample the episodes."""
    path = options.load_episodes
    if path is None:
        return sample_episodes(labels, shot=max(options.shot or SHOTS), **_sampling(options))
    for name in ("dirichlet", "distractors"):
        if getattr(options, name) is not None:
            raise OptionError(f"--{name} is for sampling; the episodes of {path} are fixed.")
    episodes = Episodes.load(path)
    fixed = {"way": episodes.way, "query": episodes.query_per_class, "episodes": len(episodes)}
    for name, value in fixed.items():
        if getattr(options, name) not in (None, value):
            raise OptionError(
                f"--{name} {getattr(options, name)} does not agree with {path}, which has {value}."
            )
    return episodes


def _choose_z(
    options: argparse.Namespace,
    methods: Sequence[Method | PictureMethod],
    episodes: Episodes,
    shots: list[int],
) -> list[Choice]:
    """With --validation, choose Z on those classes for each method that leaves it open."""
    if options.validation is None:
        return []
    features, labels = load_features(options.validation)
    with progress_bar("validation episodes") as progress:
        return choose_z(
            features,
            labels,
            _on_features(methods),
            shot=shots,
            way=episodes.way,
            query=episodes.query_per_class,
            episodes=len(episodes),
            seed=_sampling(options)["seed"],
            device=options.device,
            progress=progress,
        )


def _settings(
    options: argparse.Namespace, episodes: Episodes, choices: list[Choice]
) -> dict[str, Any]:
    """Everything needed to get the same results again."""
    settings: dict[str, Any] = {"features": options.features.name}
    if origin := read_provenance(options.features):
        settings["made_by"] = origin
    if options.base is not None:
        settings["base"] = options.base.name
    if options.network is not None:
        settings |= {"network": Path(options.network).name, "pictures": options.pictures.name}
    if options.load_episodes is None:
        settings |= _sampling(options)
    else:
        settings |= {"episode_file": options.load_episodes.name, "way": episodes.way}
    if options.validation is not None:
        chosen = [{"method": c.method, "shot": c.shot, "z": z_text(c.z)} for c in choices]
        settings["validation"] = {"features": options.validation.name, "chosen": chosen}
    return settings | {"versions": versions()}
