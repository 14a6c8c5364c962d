"""What an experiment found, as a JSON file that pages and documents are made from."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from protorect import __version__
from protorect._utils.files import write_text
from protorect.errors import DataError
from protorect.paper.published import Key, Value

PACKAGES = ("numpy", "torch", "scikit-learn")
_DECIMALS = 4


@dataclass(frozen=True)
class Measured:
    """One number that was measured.

    Parameters
    ----------
    dataset, backbone, method
        Of what; the method as it is spelled, without the Z that was chosen.
    way, shot, query, episodes, distractors
        Of the episodes.
    quantity
        "accuracy" or "map", in percent.
    value, ci95
        Mean over the episodes, and the half-width of its 95 % interval.
    z
        What was chosen on the validation classes, such as "8" or "all"; None where the method
        has no Z or its name says it.
    """

    dataset: str
    backbone: str
    method: str
    way: int
    shot: int
    query: int
    episodes: int
    value: float
    ci95: float | None
    z: str | None = None
    distractors: int = 0
    quantity: str = "accuracy"

    @property
    def key(self) -> Key:
        """What it can be compared with.

        The paper names no backbone on Meta-Dataset: there, any is compared with its numbers.
        """
        backbone = None if self.dataset.startswith("meta-") else self.backbone
        return Key(self.dataset, backbone, self.method, self.way, self.distractors, self.quantity)

    @property
    def estimate(self) -> Value:
        """The number with its interval."""
        return Value(self.value, self.ci95)


@dataclass(frozen=True)
class Record:
    """The result of one experiment.

    Parameters
    ----------
    experiment
        Its name.
    seed, seconds
        Of the episodes; how long it took.
    features
        The files it read: name, hash of the values, and what made them.
    versions
        Of this project and what it stands on.
    measured
        The numbers.
    drawings
        By source, the numbers that figures are drawn from.
    """

    experiment: str
    seed: int
    seconds: float
    features: tuple[Mapping[str, Any], ...]
    measured: tuple[Measured, ...]
    drawings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=lambda: current_versions())

    def text(self) -> str:
        """As JSON, numbers rounded to what can be read."""
        return json.dumps(_rounded(asdict(self)), allow_nan=False, indent=1) + "\n"

    @classmethod
    def of_text(cls, text: str) -> Record:
        """From the JSON of `text`; ValueError, KeyError or TypeError if it is something else."""
        held = json.loads(text)
        if not isinstance(held, dict) or set(held) != {one.name for one in fields(cls)}:
            raise ValueError("it has other fields")
        measured = tuple(Measured(**one) for one in held["measured"])
        return cls(**held | {"measured": measured, "features": tuple(held["features"])})

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `<experiment>.json` into a folder."""
        path = Path(folder) / f"{self.experiment}.json"
        write_text(path, self.text())
        return path

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read what `save` wrote."""
        try:
            return cls.of_text(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} is no result of `protorect paper` ({error}). Measure it again, or remove "
                "it."
            ) from error


def load_records(folder: str | os.PathLike[str]) -> list[Record]:
    """All results in a folder, by the name of their file."""
    paths = sorted(Path(folder).glob("*.json"))
    if not paths:
        raise DataError(f"{Path(folder)} holds no results; `protorect paper --results` makes some.")
    return [Record.load(path) for path in paths]


def measured_by_key(records: Iterable[Record]) -> dict[tuple[Key, int], Measured]:
    """Every measured number by key and shot; what two experiments measured is the same."""
    ordered = sorted(records, key=lambda record: record.experiment)
    return {(one.key, one.shot): one for record in ordered for one in record.measured}


def current_versions() -> dict[str, str]:
    """Of this project, Python and the packages that results depend on."""
    return {
        "protorect": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def _rounded(value: Any) -> Any:
    """Plain numbers, short enough to be read."""
    if isinstance(value, Mapping):
        return {str(name): _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return round(value, _DECIMALS) if isinstance(value, float) else value
