"""Measure the tables and figures of "Prototype Rectification for Few-Shot Learning" again.

They are shown beside the published numbers. NAME is an experiment: main, meta-dataset, ablation,
backbones, tft, omniglot, cub, higher-way, robust, figures, weights; all run if none is named.

Features are read from a folder, from files such as omniglot-conv64-test.npz and
omniglot-conv64-val.npz, as `protorect extract` writes them. Data sets without features are skipped
and listed; `protorect paper --list` shows the commands that make their features. Fine-tuning whole
networks, in tft, also needs the packed pictures and the training runs, in folders such as omniglot
and omniglot-conv64. Meta-Dataset is measured with the networks that --network names, whose features
are in files such as meta-omniglot-NETWORK-test.npz.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from protorect._utils.files import check_writable, write_text
from protorect.cli.arguments import add_parameters, given
from protorect.cli.output import check_outputs, print_table
from protorect.cli.progress import progress_bar
from protorect.errors import OptionError
from protorect.paper.document import documents, experiment_sections, measured_tables, paper_page
from protorect.paper.experiments import (
    EXPERIMENTS,
    META_DATASET,
    Experiment,
    MeasurementOptions,
    experiment as experiment_named,
    run as run_experiment,
    with_networks,
)
from protorect.paper.feature_sets import FeatureFolder
from protorect.paper.measure import Known
from protorect.paper.networks import named_networks
from protorect.paper.record import Record, earlier_record, load_records
from protorect.report.page import render_html


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME")
    add("--list", action="store_true", help="list experiments, and commands for missing features")
    add(
        "--network",
        action="append",
        metavar="SOURCE",
        help="for meta-dataset: a run, weights or a name, as `protorect extract` takes it; repeat",
    )
    folder = partial(add, type=Path, metavar="DIR")
    folder("--features", default="features", help="folder of feature files (%(default)s)")
    folder("--data", default="data", help="folder of packed data sets, for tft (%(default)s)")
    folder("--runs", default="runs", help="folder of training runs, for tft (%(default)s)")
    add_parameters(parser, MeasurementOptions)
    folder(
        "--results",
        help="write NAME.json for each experiment; numbers of features that are not there are kept",
    )
    folder("--from-results", help="measure nothing, show the results in this folder")
    add("--html", type=Path, metavar="PAGE.html", help="write one HTML page")
    folder("--docs", help="write results.md, weights.md and their figures")


def run(options: argparse.Namespace) -> None:
    """List the experiments, or run them, print their tables and write the requested files."""
    chosen = [experiment_named(name) for name in dict.fromkeys(options.names or EXPERIMENTS)]
    networks = named_networks(options.network or ())
    if networks:
        if META_DATASET not in (one.name for one in chosen):
            raise OptionError("--network is for the experiment meta-dataset, which is not named.")
        chosen = [with_networks(one, list(networks)) for one in chosen]
    folder = FeatureFolder(options.features, options.data, options.runs, networks)
    if options.list:
        _list(chosen, folder)
        return
    if options.from_results is not None and (options.names or options.results is not None):
        raise OptionError(
            "--from-results measures nothing, so it takes neither names nor --results."
        )
    check_outputs([options.html])
    records = _records(chosen, folder, options)
    sections = experiment_sections(records)
    for table in measured_tables(records, sections):
        print_table(table)
    if options.html is not None:
        write_text(options.html, render_html(paper_page(records, sections.values())))
        print(options.html)
    if options.docs is not None:
        trainings = (options.docs / "trainings.md").exists()
        for name, text in documents(records, sections, trainings).items():
            write_text(options.docs / name, text)
            print(options.docs / name)


def _records(
    chosen: list[Experiment], folder: FeatureFolder, options: argparse.Namespace
) -> list[Record]:
    """Run the experiments, saving each record at once; or load the records of a folder."""
    if options.from_results is not None:
        return load_records(options.from_results)
    records, measured = [], MeasurementOptions(**given(options, MeasurementOptions))
    earlier, known = _earlier(chosen, options.results, measured.seed), Known()
    for experiment in chosen:
        with progress_bar(experiment.name) as progress:
            record = run_experiment(experiment, folder, measured, progress, known)
        if record is None:
            print(
                f"{experiment.name}: no feature files of it in the folder {options.features}; "
                f"`protorect paper {experiment.name} --list` shows how to make them",
                file=sys.stderr,
            )
            continue
        if experiment.name in earlier:
            record = record.with_earlier(earlier[experiment.name])
        records.append(record)
        if options.results is not None:
            print(record.save(options.results))
    return records


def _earlier(chosen: list[Experiment], results: Path | None, seed: int) -> dict[str, Record]:
    """What the results folder already holds; an error before the work if it cannot be kept."""
    if results is None:
        return {}
    for experiment in chosen:
        check_writable(results / f"{experiment.name}.json")
    found = {one.name: earlier_record(results, one.name, seed) for one in chosen}
    return {name: record for name, record in found.items() if record}


def _list(chosen: list[Experiment], folder: FeatureFolder) -> None:
    for experiment in chosen:
        missing = {
            features: folder.missing_splits(features) for features in experiment.feature_sets
        }
        ready = [features for features, splits in missing.items() if not splits]
        names = ", ".join(features.name for features in ready)
        tables = f" (Table {', '.join(map(str, experiment.tables))})" if experiment.tables else ""
        print(f"{experiment.name}: {experiment.title}{tables}")
        print(f"  can run on {names}" if ready else "  cannot run yet")
        for features, splits in missing.items():
            if splits:
                _print_commands(f"{features.name} needs", folder.commands([(features, splits)]))
        for features in ready if experiment.picture_methods else ():
            if not folder.has_pictures(features):
                methods = ", ".join(experiment.picture_methods)
                commands = folder.commands([(features, ())])
                _print_commands(f"{methods} on {features.name} needs", commands)


def _print_commands(purpose: str, commands: list[str]) -> None:
    print("\n    ".join([f"  {purpose}", *commands]))
