"""`protorect evaluate`: methods compared on the same episodes of a set of features."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protorect.errors import DataError, OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from protorect.evaluation.episodes import Episodes
    from protorect.evaluation.evaluate import Result
    from protorect.evaluation.fine_tuned import Pictures
    from protorect.evaluation.select_z import Choice
    from protorect.methods import Method, PictureMethod

DESCRIPTION = """\
Compare methods on the same few-shot episodes, with 95 % intervals.

FEATURES is a .npz file with `features` (n, dim), `labels` (n,) and optionally `class_names`, or a
folder that `protorect extract` made; by default a class needs 20 rows, 5 shots and 15 queries.

`protorect methods` lists the methods and `protorect methods NAME` tells the options of one, which
are written behind its name: bd-cspn:z=4,rank=softmax

tft fine-tunes the network for each episode, so it needs what made FEATURES: --network and
--pictures, as they were given to `protorect extract`.
"""
DRAWN = {"way": 5, "query": 15, "episodes": 600, "seed": 0, "dirichlet": None, "distractors": 0}
SHOTS = [1, 5]


def add_to(verbs: Any) -> None:
    """Add this verb to the parser."""
    parser = verbs.add_parser(
        "evaluate",
        help="compare methods on the same episodes of a feature file",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("features", metavar="FEATURES", type=Path)
    add(
        "--method",
        action="append",
        metavar="NAME",
        help="repeat for several, or all; the paper's five if not given",
    )
    add("--way", type=int, help="classes in an episode (5)")
    add(
        "--shot",
        type=int,
        action="append",
        help="support samples a class; repeat (1 and 5; with --load-episodes, the file's)",
    )
    add("--query", type=int, help="queries a class (15)")
    add("--episodes", type=int, help="how many (600)")
    add("--seed", type=int, help="the same seed draws the same episodes (0)")
    add("--dirichlet", type=float, metavar="ALPHA", help="unequal numbers of queries a class")
    add("--distractors", type=int, metavar="CLASSES", help="add queries of so many other classes")
    files = parser.add_mutually_exclusive_group()
    files.add_argument(
        "--load-episodes", type=Path, metavar="F.npz", help="use the episodes in this file"
    )
    files.add_argument(
        "--save-episodes", type=Path, metavar="F.npz", help="write the episodes to this file"
    )
    add(
        "--validation",
        type=Path,
        metavar="FEATURES.npz",
        help="choose Z for each method and shot on episodes of these classes",
    )
    add("--json", type=Path, metavar="OUT.json", help="write the results")
    add("--csv", type=Path, metavar="OUT.csv", help="write the results")
    add(
        "--predictions",
        type=Path,
        metavar="OUT.npz",
        help="write the position 0 .. way - 1 predicted for each query of the episodes",
    )
    add(
        "--base",
        type=Path,
        metavar="BASE.npz",
        help="features of the base classes, whose mean simpleshot takes off (none)",
    )
    add(
        "--network",
        metavar="RUN",
        help="for tft: the run, weights or name of pretrained ones that made the features",
    )
    add(
        "--pictures",
        type=Path,
        metavar="PACKED",
        help="for tft: what `protorect prepare` made, which the features are of",
    )
    add("--device", help="where to compute, as torch names it (cpu)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Evaluate and print a table; write what was asked for."""
    from protorect._utils.files import write_text
    from protorect.cli.output import check_outputs, show
    from protorect.evaluation.features import load_features
    from protorect.evaluation.select_z import z_text
    from protorect.report.results import results_csv, results_json, results_table

    methods = _methods(options)
    outputs = (options.save_episodes, options.json, options.csv, options.predictions)
    inputs = (options.features, options.load_episodes, options.validation, options.base)
    check_outputs(outputs, inputs)
    pictures = _pictures(options)
    if options.base is not None:
        methods = _with_base_mean(methods, load_features(options.base)[0])
    features, labels = load_features(options.features)
    episodes = _episodes(options, labels)
    shots = options.shot or ([episodes.shot] if options.load_episodes else SHOTS)
    choices = _choices(options, methods, episodes, shots)
    results = _results(options, methods, pictures, (features, labels), episodes, shots, choices)
    title = f"{options.features.name}: {episodes.way}-way, {len(episodes)} episodes, accuracy in %"
    show(results_table(results, title))  # first, so that it is there if a file cannot be written
    for choice in choices:
        print(f"{choice.method}, {choice.shot}-shot: Z = {z_text(choice.z)}")
    if options.save_episodes is not None:
        episodes.save(options.save_episodes)
    if options.json is not None:
        write_text(options.json, results_json(results, _settings(options, episodes, choices)))
    if options.csv is not None:
        write_text(options.csv, results_csv(results))
    if options.predictions is not None:
        _save_predictions(options.predictions, results)


def _methods(options: argparse.Namespace) -> Sequence[Method | PictureMethod]:
    """Those asked for, where the pictures are given those that need them too."""
    from protorect.methods import PAPER, PICTURE_METHODS, chosen_methods, chosen_with_pictures
    from protorect.methods.registry import ALL

    asked, named = options.method or PAPER, ", ".join(PICTURE_METHODS)
    given = [options.network is not None, options.pictures is not None]
    if any(given) and not all(given):
        raise OptionError(
            "--network and --pictures go together: the network that made the features, and the "
            "packed pictures they are of."
        )
    if not any(given):
        if ALL in asked:
            print(f"left out: {named}, for want of --network and --pictures", file=sys.stderr)
        return chosen_methods(asked)
    methods = chosen_with_pictures(asked)
    if not _on_pictures(methods):
        raise OptionError(
            f"--network and --pictures are for {named}, which is not among the methods."
        )
    return methods


def _on_features(methods: Sequence[Method | PictureMethod]) -> list[Method]:
    from protorect.methods import Method

    return [one for one in methods if isinstance(one, Method)]


def _on_pictures(methods: Sequence[Method | PictureMethod]) -> list[PictureMethod]:
    from protorect.methods import PictureMethod

    return [one for one in methods if isinstance(one, PictureMethod)]


def _pictures(options: argparse.Namespace) -> Pictures | None:
    from protorect.evaluation.fine_tuned import Pictures

    if options.network is None:
        return None
    return Pictures.behind(options.features, options.network, options.pictures)


def _results(
    options: argparse.Namespace,
    methods: Sequence[Method | PictureMethod],
    pictures: Pictures | None,
    table: tuple[NDArray[Any], NDArray[Any]],
    episodes: Episodes,
    shots: list[int],
    choices: list[Choice],
) -> list[Result]:
    """Of every method on the same episodes, shot by shot in the order of the methods."""
    from protorect.cli.progress import progress_bar
    from protorect.evaluation.fine_tuned import evaluate_fine_tuned
    from protorect.evaluation.select_z import evaluate_chosen

    results: list[Result] = []
    same: dict[str, Any] = {"shot": shots, "episodes": episodes, "device": options.device}
    if on_features := _on_features(methods):
        with progress_bar("episodes") as progress:
            results += evaluate_chosen(*table, on_features, choices, **same, progress=progress)
    if pictures is not None:
        tuned = _on_pictures(methods)
        with progress_bar("fine-tuned episodes") as progress:
            results += evaluate_fine_tuned(pictures, tuned, **same, progress=progress)
    order = [one.name for one in methods]
    return sorted(results, key=lambda one: (shots.index(one.shot), order.index(one.method)))


def _with_base_mean(
    methods: Sequence[Method | PictureMethod], base: NDArray[Any]
) -> list[Method | PictureMethod]:
    """The methods, told the mean of the base classes where they can use it."""
    if not any(hasattr(one.options, "base_mean") for one in methods):
        raise OptionError("--base is for simpleshot, which is not among the methods.")
    if base.ndim != 2 or len(base) == 0:
        raise DataError(f"--base needs features (n, dim), the file has shape {base.shape}.")
    mean = base.mean(axis=0, dtype="float64")
    return [
        one.with_options(base_mean=mean) if hasattr(one.options, "base_mean") else one
        for one in methods
    ]


def _episodes(options: argparse.Namespace, labels: NDArray[Any]) -> Episodes:
    from protorect.evaluation.episodes import Episodes, sample_episodes

    if options.load_episodes is None:
        return sample_episodes(labels, shot=max(options.shot or SHOTS), **_drawn(options))
    for name in ("dirichlet", "distractors"):
        if getattr(options, name) is not None:
            raise OptionError(f"--{name} is for drawing; {options.load_episodes} is drawn already.")
    episodes = Episodes.load(options.load_episodes)
    held = {"way": episodes.way, "query": episodes.query_per_class, "episodes": len(episodes)}
    for name, value in held.items():
        asked = getattr(options, name)
        if asked not in (None, value):
            raise OptionError(
                f"--{name} {asked} does not agree with {options.load_episodes}, which has {value}."
            )
    return episodes


def _drawn(options: argparse.Namespace) -> dict[str, Any]:
    asked = {name: getattr(options, name) for name in DRAWN}
    return {name: DRAWN[name] if value is None else value for name, value in asked.items()}


def _choices(
    options: argparse.Namespace,
    methods: Sequence[Method | PictureMethod],
    episodes: Episodes,
    shots: list[int],
) -> list[Choice]:
    """Z for each method that leaves it open, from the validation classes if they are given."""
    from protorect.cli.progress import progress_bar
    from protorect.evaluation.features import load_features
    from protorect.evaluation.select_z import choose_z

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
            seed=_drawn(options)["seed"],
            device=options.device,
            progress=progress,
        )


def _settings(
    options: argparse.Namespace, episodes: Episodes, choices: list[Choice]
) -> dict[str, Any]:
    """What is needed to get the same results again."""
    from protorect._utils.versions import versions
    from protorect.embedding.finished import made_by
    from protorect.evaluation.select_z import z_text

    settings: dict[str, Any] = {"features": options.features.name}
    settings |= {"made_by": origin} if (origin := made_by(options.features)) else {}
    if options.base is not None:
        settings["base"] = options.base.name
    if options.network is not None:
        settings |= {"network": Path(options.network).name, "pictures": options.pictures.name}
    if options.load_episodes is None:
        settings |= _drawn(options)
    else:
        settings |= {"episode_file": options.load_episodes.name, "way": episodes.way}
    if options.validation is not None:
        chosen = [
            {"method": choice.method, "shot": choice.shot, "z": z_text(choice.z)}
            for choice in choices
        ]
        settings |= {"validation": {"features": options.validation.name, "chosen": chosen}}
    return settings | {"versions": versions()}


def _save_predictions(path: Path, results: list[Result]) -> None:
    from protorect._utils.arrays import save_arrays

    save_arrays(path, **{f"{r.method}, {r.shot}-shot": r.predictions for r in results})
