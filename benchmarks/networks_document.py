"""The tables and the figure of docs/networks.md, and what `protorect networks` shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.speed_plot import Point, accuracy_against_speed
from protorect.embedding.sources import DEFAULT_SOURCE
from protorect.report.style import standalone_svg
from protorect.report.table import Table

SETS = {
    "groceries": "groceries, 10 classes that calibrated nothing",
    "birds": "birds, novel classes",
    "all groceries": "groceries, all classes",
    "signs": "traffic signs",
}
DECIDING = ("groceries", "birds")


def tables(results: Mapping[str, Any]) -> dict[str, Table]:
    """Accuracy against speed, all sets, and what int8 costs."""
    accuracy, speed, method = results["accuracy"], results["speed"], results["method"]
    specs = list(accuracy["groceries"])
    protocol = f"{results['way']} classes, {results['query']} queries per class, "
    protocol += f"{results['episodes']} episodes, `{method}`"
    header = [f"{name}, {n}" for name in DECIDING for n in ("1 example", "5 examples")]
    return {
        "networks": Table(
            f"Accuracy in % with 95 % intervals: {protocol}. Decoded pictures/s on one core.",
            ["network", *header, "pictures/s"],
            [
                [
                    f"`{_name(spec)}` {_precision(spec)}",
                    *_cells(accuracy, spec, DECIDING, method),
                    f"{_rate(speed, spec):.0f}",
                ]
                for spec in specs
            ],
        ),
        "networks-sets": Table(
            "The same on further sets, which decided nothing.",
            ["network", *(f"{s}, {n}" for s in list(SETS)[2:] for n in (1, 5))],
            [
                [
                    f"`{_name(spec)}` {_precision(spec)}",
                    *_cells(accuracy, spec, list(SETS)[2:], method),
                ]
                for spec in accuracy["signs"]
            ],
        ),
        "int8": Table(
            "Points of accuracy that int8 loses against float32 on the same episodes, with 95 % "
            "intervals; below 0 it is better.",
            ["network, examples", *SETS],
            [
                [
                    f"`{_name(spec)}`, {shot}",
                    *(_loss(accuracy[s], spec, method, shot) for s in SETS),
                ]
                for spec in specs
                if "loss" in accuracy["groceries"][spec][method]["1"]
                for shot in ("1", "5")
            ],
        ),
        "networks-speed": Table(
            "Decoded pictures per second and core of efficientnet-lite2.",
            ["computed by", "pictures/s"],
            [
                [label, f"{speed[key]:.0f}"]
                for label, key in (
                    ("onnxruntime, int8", "efficientnet-lite2 int8"),
                    ("onnxruntime, float32", "efficientnet-lite2 float32"),
                    ("torch, float32", "efficientnet-lite2 torch float32"),
                    ("torch, bfloat16", "efficientnet-lite2 torch bfloat16"),
                )
            ],
        ),
    }


def plot(results: Mapping[str, Any]) -> str:
    """Accuracy against pictures/s of every network in int8, a panel per set and shot."""
    method = results["method"]
    panels = {}
    for name in DECIDING:
        for shot, words in (("1", "1 example"), ("5", "5 examples")):
            points = [
                Point(
                    _name(spec).removeprefix("efficientnet-").replace(":mirror=true", " mirrored"),
                    rate,
                    cell["accuracy"],
                    cell["ci95"],
                    filled=_precision(spec) == "int8",
                    marked=_name(spec) == DEFAULT_SOURCE and _precision(spec) == "int8",
                )
                for spec, methods in results["accuracy"][name].items()
                if (rate := _rate(results["speed"], spec)) and (cell := methods[method][shot])
            ]
            panels[f"{name}, {words} per class"] = points
    return standalone_svg(accuracy_against_speed(panels))


def measured_text(results: Mapping[str, Any]) -> str:
    """The accuracies that come with the package, in the precision that is used by default."""
    method = results["method"]
    networks: dict[str, Any] = {}
    for name in DECIDING:
        for spec, methods in results["accuracy"][name].items():
            if _precision(spec) == "int8":
                networks.setdefault(_name(spec), {})[name] = {
                    shot: {key: round(cell[key], 4) for key in ("accuracy", "ci95")}
                    for shot, cell in methods[method].items()
                }
    content = {"method": method, "way": results["way"], "networks": networks}
    return json.dumps(content, indent=1) + "\n"


def _name(spec: str) -> str:
    return spec.split()[0]


def _precision(spec: str) -> str:
    return spec.split()[-1]


def _rate(speed: Mapping[str, float], spec: str) -> float:
    """Pictures per second and core; a mirrored network computes everything twice."""
    name, precision = spec.split()
    plain = name.removesuffix(":mirror=true")
    return speed[f"{plain} {precision}"] / (1 if plain == name else 2)


def _cells(accuracy: Mapping[str, Any], spec: str, sets: Any, method: str) -> list[str]:
    cells = [accuracy[name][spec][method][shot] for name in sets for shot in ("1", "5")]
    return [f"{one['accuracy']:.1f} ± {one['ci95']:.1f}" for one in cells]


def _loss(of_set: Mapping[str, Any], spec: str, method: str, shot: str) -> str:
    one = of_set[spec][method][shot]
    return f"{one['loss']:+.2f} ± {one['loss_ci95']:.2f}"
