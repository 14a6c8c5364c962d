"""The folder of a run: its configuration, its log and the weights.

    run.json            configuration, data and versions
    log.jsonl           one line per epoch
    last.safetensors    everything needed to resume
    best.safetensors    backbone and base classifier of the best epoch, for use

Files are replaced atomically, so a run killed at any moment resumes from its last epoch.
"""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from functools import wraps
from inspect import signature
from itertools import repeat
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch
from torch import nn
from torch.optim import Optimizer

from protorect._utils.checkpoint import check_fits, load_tensors, save_tensors
from protorect._utils.documents import COUNT, read_json, read_json_lines
from protorect._utils.files import output_lock, read_errors, remove_temporary_files, write_text
from protorect._utils.text import on_one_line, printable
from protorect._utils.versions import versions
from protorect.backbones.weights import BASE_CLASSIFIER, BEST_WEIGHTS, WEIGHTS
from protorect.datasets.catalogue import DATASETS
from protorect.datasets.packed import PackedDataset
from protorect.errors import DataError
from protorect.training.config import TrainingConfig

CHECKPOINT = "training"  # the kind of `last.safetensors`
_REMEDY = "Remove this line."
_Options = ParamSpec("_Options")
_Result = TypeVar("_Result")


def only_writer(train: Callable[_Options, _Result]) -> Callable[_Options, _Result]:
    """Let `train(packed, out, ...)` hold the lock of its run; of several processes the first."""

    @wraps(train)
    def with_lock(*args: _Options.args, **kwargs: _Options.kwargs) -> _Result:
        given: dict[str, Any] = signature(train).bind(*args, **kwargs).arguments
        first = "processes" not in given or given["processes"].first
        with output_lock(Path(given["out"])) if first else nullcontext():
            return train(*args, **kwargs)

    return with_lock


class Run:
    """The files of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.last = folder / "last.safetensors"
        self.best = folder / BEST_WEIGHTS
        self.log = folder / "log.jsonl"

    def start(self, config: TrainingConfig, data: dict[str, Any]) -> None:
        """Write configuration, data and versions into a new folder."""
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError(f"{printable(self.folder)} is a file; give the name of a folder.")
        with read_errors(self.folder):
            remove_temporary_files(self.folder)  # of a run that was killed before it began
            occupied = self.folder.exists() and any(self.folder.iterdir())
        if occupied:
            raise DataError(
                f"{self.folder} is not empty. Give another folder, or --resume to continue the "
                "run in it."
            )
        document = {"config": asdict(config), "data": data, "versions": versions()}
        write_text(self.folder / "run.json", json.dumps(document, indent=2) + "\n")

    def check_same(self, config: TrainingConfig, data: dict[str, Any]) -> None:
        """Raise DataError if the run in the folder has another configuration or other data."""
        path = self.folder / "run.json"
        if not path.exists():
            raise DataError(f"{self.folder} holds no run to resume.")
        started = read_json(path, {"config": dict, "data": dict})
        # Runs of earlier versions lack the settings that were added since.
        settings = {TrainingConfig.canonical(n): v for n, v in started["config"].items()}
        before = _flat(_as_json(TrainingConfig()) | settings, started["data"])
        for name, value in _flat(_as_json(config), data).items():
            if before.get(name) != value:
                raise DataError(
                    f"the run in {self.folder} has {name} = {on_one_line(before.get(name))}, not "
                    f"{value}. Resume it with the settings it was started with, or start another."
                )

    def epochs_logged(self) -> list[dict[str, Any]]:
        """The lines of the log, which may be incomplete: resuming does not need it."""
        if not self.log.exists():
            return []
        lines = read_json_lines(self.log, repeat({"epoch": COUNT}), _REMEDY, cut_off=True)
        return list(lines)

    def write_log(self, epochs: list[dict[str, Any]]) -> None:
        """Replace the log."""
        write_text(self.log, "".join(json.dumps(epoch) + "\n" for epoch in epochs))

    def save_best(
        self,
        backbone: nn.Module,
        classifier: nn.Module,
        data: PackedDataset,
        config: TrainingConfig,
        line: dict[str, Any],
    ) -> None:
        """Write the weights after the epoch of this line of the log, with what their use needs."""
        description = {
            "kind": WEIGHTS,
            "backbone": config.backbone,
            "channels": data.channels,
            "size": data.size,
            "mean": list(data.mean),
            "std": list(data.std),
            "ink_high": data.name in DATASETS and DATASETS[data.name].bright_on_dark,
            "data": data.name,
            "epoch": line["epoch"],
            "validation": line.get("validation"),
            "config": asdict(config),
        }
        base = {f"{BASE_CLASSIFIER}{n}": t for n, t in classifier.state_dict().items()}
        save_tensors(self.best, backbone.state_dict() | base, description)

    def save_last(self, model: nn.Module, optimizer: Optimizer, epoch: int, best: float) -> None:
        """Write weights and momenta by parameter name, after `epoch` epochs."""
        weights = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
        momenta = {
            f"momentum.{name}": optimizer.state[parameter]["momentum_buffer"]
            for name, parameter in model.named_parameters()
            if optimizer.state[parameter].get("momentum_buffer") is not None
        }
        state = {"kind": CHECKPOINT, "epoch": epoch, "best": best}
        save_tensors(self.last, weights | momenta, state)

    def restore_last(self, model: nn.Module, optimizer: Optimizer) -> tuple[int, float]:
        """Load weights and momenta; return the number of finished epochs and the best accuracy."""
        tensors, state = load_tensors(self.last, CHECKPOINT, {"epoch": COUNT, "best": float})
        parameters = dict(model.named_parameters())
        expected = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
        if any(name.startswith("momentum.") for name in tensors):  # none, or those of all
            expected |= {f"momentum.{name}": tensor for name, tensor in parameters.items()}
        check_fits(tensors, expected, f"{self.last} does not fit this run")
        model.load_state_dict({name: tensors[f"model.{name}"] for name in model.state_dict()})
        for name, parameter in parameters.items():
            if f"momentum.{name}" in tensors:
                momentum = torch.empty_like(parameter).copy_(tensors[f"momentum.{name}"])
                optimizer.state[parameter]["momentum_buffer"] = momentum
        return state["epoch"], state["best"]


def _as_json(config: TrainingConfig) -> dict[str, Any]:
    """The settings as in a JSON file, where tuples become lists."""
    settings: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    return settings


def _flat(config: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    return config | {f"data {key}": value for key, value in data.items()}
