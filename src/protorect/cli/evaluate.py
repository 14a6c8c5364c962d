"""Compare methods on the same few-shot episodes, with 95 % intervals.

FEATURES is a .npz file with `features` (n, dim), `labels` (n,) and optionally `class_names` and
`groups` (n,), or a folder that `protorect extract` made; by default a class needs 20 rows, 5 shots
and 15 queries. Support and queries of an episode share no group, such as the frames of one video.

`protorect methods` lists the methods and `protorect methods NAME` describes the options of one,
which are written after its name: bd-cspn:z=4,rank=softmax

--method FILE.py:function or package.module:function runs a function of your own,
function(support, labels, query, ways) -> scores: torch tensors, raw features of float32, support
(tasks, n, dim), labels (tasks, n), query (tasks, m, dim), scores (tasks, m, ways), higher is better

tft fine-tunes the network for each episode, so it needs what made FEATURES: --network and
--pictures, as they were given to `protorect extract`.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from protorect._utils.arrays import save_arrays
from protorect._utils.files import write_text
from protorect._utils.versions import versions
from protorect.cli.arguments import add_parameters, given
from protorect.cli.output import check_outputs, print_table
from protorect.cli.progress import progress_bar
from protorect.embedding.store import read_provenance
from protorect.errors import OptionError
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.evaluate import SHOTS, evaluate
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.own_method import resolve_methods
from protorect.evaluation.result import Result
from protorect.evaluation.sampling import Sampling, sample_episodes
from protorect.evaluation.select_z import z_text
from protorect.methods import PAPER, PICTURE_METHODS
from protorect.methods.registry import ALL
from protorect.report.results import results_csv, results_json, results_table

SAMPLING = ("way", "query", "episodes", "seed", "dirichlet", "distractors", "present")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    path: dict[str, Any] = {"type": Path, "metavar": "F.npz"}
    add("features", metavar="FEATURES", type=Path)
    add(
        "--method",
        action="append",
        metavar="NAME",
        help="repeat, or all; default: the paper's five",
    )
    add("--shot", type=int, action="append", dest="shots", metavar="N", help="repeat (1 and 5)")
    add_parameters(parser, Sampling, *SAMPLING)
    episodes = parser.add_mutually_exclusive_group().add_argument
    episodes("--load-episodes", **path, help="use these episodes and their shots")
    episodes("--save-episodes", **path, help="write the episodes to this file")
    add("--validation", **path, help="choose Z per method and shot on these")
    add("--json", type=Path, metavar="OUT.json", help="write the results")
    add("--csv", type=Path, metavar="OUT.csv", help="write the results")
    add("--predictions", **path, help="write predicted classes, 0 .. way - 1")
    add("--base", **path, help="base classes: simpleshot, laplacian-shot subtract their mean")
    add("--network", metavar="RUN", help="for tft: the run or weights that made the features")
    add("--pictures", type=Path, metavar="PACKED", help="for tft: the pictures of the features")
    add("--device", help="where to compute, as a torch device (cpu)")


def run(options: argparse.Namespace) -> None:
    """Evaluate, print a table, and write the requested files."""
    names, with_pictures = options.method or PAPER, bool(options.network or options.pictures)
    methods = resolve_methods(names, with_pictures)
    if ALL in names and not with_pictures:
        left_out = ", ".join(PICTURE_METHODS)
        print(f"left out: {left_out}, without --network and --pictures", file=sys.stderr)
    check_outputs(
        (options.save_episodes, options.json, options.csv, options.predictions),
        (options.features, options.load_episodes, options.validation, options.base),
    )
    table = FeatureTable.of(options.features, device=options.device)
    episodes = _episodes(options, table)
    if table.groups is not None:
        groups = f"{len(np.unique(table.groups))} groups in {options.features.name}"
        print(f"{groups}: support and queries of an episode share none", file=sys.stderr)
    with progress_bar("episodes") as progress:
        results = evaluate(
            table,
            methods=methods,
            shot=options.shots or (None if options.load_episodes else SHOTS),
            episodes=episodes,
            seed=Sampling(**given(options, Sampling)).seed,
            base=options.base,
            validation=options.validation,
            network=options.network,
            pictures=options.pictures,
            device=options.device,
            progress=progress,
        )
    title = f"{options.features.name}: {episodes.way}-way, {len(episodes)} episodes, accuracy in %"
    # Before the files, so that the results are shown even if a file cannot be written.
    print_table(results_table(results, title))
    for one in results:
        if one.chosen:
            print(f"{one.method}, {one.shot}-shot: Z = {z_text(one.chosen['z'])}")
    if options.save_episodes is not None:
        episodes.save(options.save_episodes)
    if options.json is not None:
        write_text(options.json, results_json(results, _settings(options, table, results)))
    if options.csv is not None:
        write_text(options.csv, results_csv(results))
    if options.predictions is not None:
        predictions = {f"{one.method}, {one.shot}-shot": one.predictions for one in results}
        save_arrays(options.predictions, **predictions)


def _episodes(options: argparse.Namespace, table: FeatureTable) -> Episodes:
    """Sample the episodes, or load them and compare them with the options that are given."""
    sampling, path = given(options, Sampling), options.load_episodes
    if path is None:
        shot = max(options.shots or SHOTS)
        return sample_episodes(table.labels, **sampling, shot=shot, groups=table.groups)
    episodes = Episodes.load(path)
    fixed = {"way": episodes.way, "query": episodes.query_per_class, "episodes": len(episodes)}
    for name, value in sampling.items():
        if name in ("dirichlet", "distractors", "present"):
            raise OptionError(f"--{name} is for sampling; the episodes of {path} are fixed.")
        if name in fixed and value != fixed[name]:
            raise OptionError(
                f"--{name} {value} does not agree with {path}, which has {fixed[name]}."
            )
    return episodes


def _settings(
    options: argparse.Namespace, table: FeatureTable, results: list[Result]
) -> dict[str, Any]:
    """Everything needed to get the same results again."""
    settings: dict[str, Any] = {"features": options.features.name}
    if origin := read_provenance(options.features):
        settings["made_by"] = origin
    for name in ("base", "network", "pictures"):
        if (path := getattr(options, name)) is not None:
            settings[name] = Path(path).name
    if options.load_episodes is None:
        sampling = Sampling(**given(options, Sampling))
        settings |= {name: getattr(sampling, name) for name in SAMPLING}
    else:
        settings |= {"episode_file": options.load_episodes.name, "way": results[0].way}
    if table.groups is not None:
        settings["groups"] = len(np.unique(table.groups))
    if options.validation is not None:
        chosen = [
            {"method": one.method, "shot": one.shot, "z": z_text(one.chosen["z"])}
            for one in results
            if one.chosen
        ]
        settings["validation"] = {"features": options.validation.name, "chosen": chosen}
    return settings | {"versions": versions()}
