"""`protorect evaluate`: methods compared on the same episodes of a feature file."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protorect import __version__
from protorect.errors import OptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from protorect.episodes import Episodes
    from protorect.evaluation import Result

DESCRIPTION = """\
Compare methods on the same few-shot episodes, with 95 % intervals.

FEATURES is a .npz file with `features` (n, dim), `labels` (n,) and optionally `class_names`.
A method may carry options: --method bd-cspn:z=4,rank=softmax
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
    add("features", metavar="FEATURES.npz", type=Path)
    add("--method", action="append", metavar="NAME", help="repeat for several; all if not given")
    add("--way", type=int, help="classes in an episode (5)")
    add("--shot", type=int, action="append", help="support samples a class; repeat (1 and 5)")
    add("--query", type=int, help="queries a class (15)")
    add("--episodes", type=int, help="how many (600)")
    add("--seed", type=int, help="the same seed draws the same episodes (0)")
    add("--dirichlet", type=float, metavar="ALPHA", help="unequal numbers of queries a class")
    add("--distractors", type=int, metavar="CLASSES", help="add queries of so many other classes")
    files = parser.add_mutually_exclusive_group()
    files.add_argument("--load-episodes", type=Path, metavar="F.npz", help="use these")
    files.add_argument("--save-episodes", type=Path, metavar="F.npz", help="keep them")
    add("--json", type=Path, metavar="OUT.json", help="write the results")
    add("--csv", type=Path, metavar="OUT.csv", help="write the results")
    add("--predictions", type=Path, metavar="OUT.npz", help="write every query's predicted class")
    add("--device", help="where to compute, as torch names it (cpu)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Evaluate and print a table; write what was asked for."""
    from rich.console import Console

    from protorect.cli.progress import progress_bar
    from protorect.evaluation import evaluate
    from protorect.features import load_features
    from protorect.files import check_writable, write_text
    from protorect.methods import METHODS, method
    from protorect.report.tables import results_csv, results_json, results_table

    methods = [method(spelling) for spelling in options.method or METHODS]
    for path in (options.save_episodes, options.json, options.csv, options.predictions):
        if path is not None:
            check_writable(path)
    features, labels = load_features(options.features)
    episodes = _episodes(options, labels)
    with progress_bar("episodes") as progress:
        results = evaluate(
            features,
            labels,
            methods,
            shot=_shots(options, episodes),
            episodes=episodes,
            device=options.device,
            progress=progress,
        )
    if options.save_episodes is not None:
        episodes.save(options.save_episodes)
    if options.json is not None:
        write_text(options.json, results_json(results, _settings(options, episodes)))
    if options.csv is not None:
        write_text(options.csv, results_csv(results))
    if options.predictions is not None:
        _save_predictions(options.predictions, results)
    title = f"{options.features.name}: {episodes.way}-way, {len(episodes)} episodes, accuracy in %"
    Console().print(results_table(results, title))


def _episodes(options: argparse.Namespace, labels: NDArray[Any]) -> Episodes:
    from protorect.episodes import Episodes, sample_episodes

    if options.load_episodes is None:
        return sample_episodes(labels, shot=max(options.shot or SHOTS), **_drawn(options))
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


def _shots(options: argparse.Namespace, episodes: Episodes) -> list[int]:
    return options.shot or ([episodes.shot] if options.load_episodes else SHOTS)


def _settings(options: argparse.Namespace, episodes: Episodes) -> dict[str, Any]:
    """What is needed to get the same results again."""
    import numpy as np
    import torch

    versions = {
        "protorect": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    settings: dict[str, Any] = {"features": options.features.name}
    if options.load_episodes is None:
        settings |= _drawn(options)
    else:
        settings |= {"episode_file": options.load_episodes.name, "way": episodes.way}
    return settings | {"versions": versions}


def _save_predictions(path: Path, results: list[Result]) -> None:
    from protorect.arrays import save_arrays

    save_arrays(path, **{f"{r.method}, {r.shot}-shot": r.predictions for r in results})
