"""`python -m benchmarks.train_all`: train the networks of the paper's tables, one after the other.

Of each network in turn, what is missing is done and what exists is left alone: the packed pictures,
the training run (an interrupted one is resumed), the features of its validation and test classes,
results/NAME.json, the accuracies, and results/training/NAME.json, the log. So it can be stopped at
any time and started again. It works with one thread at the lowest priority.

The recipes are read from the folder configs of the working folder. The folders data, runs and
features are made there, where `protorect paper` finds them. Networks that fail are named at the
end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.documents import RESULTS
from benchmarks.trainings import run_record
from protorect._utils.files import write_text
from protorect.paper.feature_sets import SPLITS, FeatureFolder, FeatureSet

# The most important first. The last two were measured before the paper's Z = 8 was.
QUEUE = (
    FeatureSet("mini-imagenet", "conv64"),
    FeatureSet("cub", "conv64"),
    FeatureSet("cub", "resnet12"),
    FeatureSet("mini-imagenet", "conv128"),
    FeatureSet("omniglot", "resnet12"),
    *(FeatureSet("cub", "conv64", run) for run in ("seed1", "seed2")),
    *(FeatureSet("omniglot", "conv64", run) for run in ("seed1", "seed2", "paper")),
    FeatureSet("cub", "conv64", "paper"),
    FeatureSet("cub", "conv128"),
    FeatureSet("cub", "conv256"),
    FeatureSet("mini-imagenet", "conv256"),
    FeatureSet("mini-imagenet", "resnet12"),
    FeatureSet("omniglot", "conv128"),
    FeatureSet("omniglot", "conv256"),
)
METHODS = ("cspn", "bd-c", "bd-i", "bd-cspn", "bd-cspn-classes", "bd-cspn-plus")


def main(arguments: list[str] | None = None) -> int:
    """Do what is missing; return 1 if a network failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [one.name for one in QUEUE]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--results", type=Path, default=RESULTS)
    for data in dict.fromkeys(one.data for one in QUEUE):
        parser.add_argument(f"--{data}", metavar="PICTURES", help=f"the pictures of {data}")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"unknown name {unknown[0]}; choose of {', '.join(names)}")
    os.nice(19)
    failed = []
    for features in QUEUE:
        if not options.names or features.name in options.names:
            root = getattr(options, features.data.replace("-", "_"))
            if not train_network(features, root, options.results):
                failed.append(features.name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


def train_network(features: FeatureSet, root: str | None, results: Path) -> bool:
    """Do what is missing of one network; return whether all of it was done."""
    folder = FeatureFolder()
    run, packed = folder.runs / features.name, folder.packed(features)
    if root is None and not packed.exists():
        print(f"{features.name}: give --{features.data} PICTURES", file=sys.stderr)
        return False
    for step in folder.steps(features, folder.missing_splits(features), root):
        if step[0] == "prepare" and packed.exists():
            continue
        if step[0] == "train":
            if finished(run):
                continue
            if "--config" not in step:
                print(
                    f"{features.name}: the working folder has no configs/ with its recipe",
                    file=sys.stderr,
                )
                return False
            step += ["--resume"] * (run / "run.json").exists()
        if not _protorect(step):
            return False
    measured = results / f"{features.recipe}.json"
    if not measured.exists() and not _protorect(_evaluate(folder, features, measured)):
        return False
    log = results / "training" / f"{features.recipe}.json"
    if run.exists() and not log.exists():
        write_text(log, json.dumps(run_record(run), indent=1) + "\n")
    return True


def finished(run: Path) -> bool:
    """Whether a run has all its epochs."""
    if not (run / "log.jsonl").exists():
        return False
    record = run_record(run)
    return len(record["log"]) >= record["config"]["epochs"]


def _evaluate(folder: FeatureFolder, features: FeatureSet, out: Path) -> list[str]:
    val, test = (str(folder.path / features.file(split)) for split in SPLITS)
    methods = [word for name in METHODS for word in ("--method", name)]
    return ["evaluate", test, "--validation", val, *methods, "--json", str(out)]


def _protorect(arguments: list[str]) -> bool:
    """Run a command with one thread; return whether it succeeded."""
    print("protorect", *arguments, flush=True)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "protorect", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
