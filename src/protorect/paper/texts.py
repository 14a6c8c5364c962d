"""Names in tables and figures (`experiments.toml`), and hand-written texts (`prose.md`)."""

from collections.abc import Collection, Sequence
from importlib.resources import files
from typing import Any

from protorect.paper import feature_sets
from protorect.paper.feature_sets import FeatureSet
from protorect.paper.published import Key, load_toml
from protorect.report.page import Figure

_NAMES: dict[str, dict[str, str]] = load_toml("experiments.toml")["names"]
DATASETS = {name: one["name"] for name, one in feature_sets.DATASETS.items()}
BACKBONES, SYSTEMS = _NAMES["backbones"], _NAMES["systems"]
QUANTITIES, RUNS = _NAMES["quantities"], _NAMES["runs"]
WEIGHTING_NAMES = _NAMES["weightings"]  # the two interpretations of eq. (6)
_PROSE = files("protorect.paper").joinpath("prose.md").read_text("utf-8")
_PARTS = (part.partition("\n") for part in _PROSE.split("\n## ")[1:])
_TEXTS = {heading: " ".join(body.split()) for heading, _, body in _PARTS}


def prose(heading: str, **values: Any) -> str:
    """The text below a heading of `prose.md`, with values filled in."""
    return _TEXTS[heading].format(**values)


def figure(svg: str, heading: str, **values: Any) -> Figure:
    """A figure whose alternative text and caption are in `prose.md`."""
    return Figure(svg, prose(f"{heading} alt", **values), prose(f"{heading} caption", **values))


def system_name(system: str) -> str:
    """Name of one of our methods; a compared system keeps its own."""
    return SYSTEMS.get(system, system)


def feature_set_name(features: FeatureSet) -> str:
    """Data set and backbone, such as "Omniglot, ConvNet-64"."""
    backbone = BACKBONES.get(features.backbone, features.backbone)
    return f"{DATASETS[features.dataset]}, {backbone}"


def row_names(keys: Sequence[Key], chosen_z: Collection[Key] = ()) -> list[str]:
    """One name per key: the system, and every other field in which the keys differ.

    `chosen_z` are the keys of numbers whose Z was chosen on validation classes.
    """
    differs = {field: len({getattr(key, field) for key in keys}) > 1 for field in Key._fields}
    names = []
    for key in keys:
        parts = {
            "backbone": key.backbone and BACKBONES.get(key.backbone, key.backbone),
            "dataset": DATASETS[key.dataset],
            "way": f"{key.way}-way",
            "distractors": f"N' = {key.distractors}",
            "quantity": QUANTITIES[key.quantity],
        }
        shown = [part for field, part in parts.items() if part and differs[field]]
        chosen = ["Z chosen"] if key in chosen_z else []
        names.append(", ".join([system_name(key.system), *chosen, *shown]))
    return names


def common_names(keys: Sequence[Key]) -> list[str]:
    """Names of the data set and the backbone, as far as all keys have the same."""
    datasets, backbones = {key.dataset for key in keys}, {key.backbone for key in keys}
    names = [DATASETS[name] for name in datasets] if len(datasets) == 1 else []
    if len(backbones) == 1:
        names += [BACKBONES.get(name, name) for name in backbones if name is not None]
    return names
