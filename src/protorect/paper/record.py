"""The result of an experiment as a JSON file, from which pages and documents are made."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from protorect._utils.documents import COUNT, read_json
from protorect._utils.files import names_in, write_text
from protorect._utils.versions import versions
from protorect.errors import DataError
from protorect.paper.feature_sets import FeatureSet
from protorect.paper.networks import PAPER_SOURCE
from protorect.paper.published import Key

_DECIMALS = 4
_TEXTS, _COUNTS = ("dataset", "backbone", "method"), ("way", "shot", "query", "episodes")
_MEASUREMENT: dict[str, Any] = {**dict.fromkeys(_TEXTS, str), **dict.fromkeys(_COUNTS, COUNT)}
_MEASUREMENT |= {"value": float, "ci95": {float, None}, "z?": {str, None}}
_MEASUREMENT |= {"trained_on?": {str, None}}
_RECORD = {
    "experiment": str,
    "seed": COUNT,
    "seconds": float,
    "features": [dict.fromkeys(("file", "sha256", "data", "backbone", "weights"), str)],
    "measured": [_MEASUREMENT | {"distractors?": COUNT, "quantity?": str, "run?": str}],
    "drawings": {str: dict},
    "versions": {str: str},
}


@dataclass(frozen=True)
class Measurement:
    """One measured number: the mean over the episodes in percent, with its 95 % interval."""

    dataset: str
    backbone: str
    method: str  # spelled without the chosen Z
    way: int
    shot: int
    query: int
    episodes: int
    value: float
    ci95: float | None
    z: str | None = None  # chosen on validation classes, such as "8" or "all"; None if it is fixed
    distractors: int = 0
    quantity: str = "accuracy"
    trained_on: str | None = None  # data set of a network that was not trained on `dataset`
    run: str = ""  # of the backbone, such as "seed1"; the others are compared with the paper

    @property
    def feature_set(self) -> str:
        """Name of the feature set, with which the names of its files begin."""
        return FeatureSet(self.dataset, self.backbone, self.run).name

    @property
    def key(self) -> Key:
        """Key of the published number to compare with.

        The paper names no backbone for Meta-Dataset: there, any that was trained on the same
        pictures as the paper's is compared with it.
        """
        as_paper = self.dataset.startswith("meta-") and self.trained_on == PAPER_SOURCE
        backbone = None if as_paper else self.backbone
        return Key(self.dataset, backbone, self.method, self.way, self.distractors, self.quantity)

    @property
    def mean(self) -> float:
        """The number, by the name that it has in `Value`."""
        return self.value


ByKey = Mapping[tuple[Key, int], Measurement]  # by key and shot


@dataclass(frozen=True)
class Record:
    """The result of one experiment."""

    experiment: str
    seed: int
    seconds: float
    features: tuple[Mapping[str, Any], ...]  # files: name, hash of the values, what made them
    measured: tuple[Measurement, ...]
    figure_data: Mapping[str, Any]  # by name of the feature set; "drawings" in the file
    versions: Mapping[str, str] = field(
        default_factory=lambda: versions() | {"scikit-learn": version("scikit-learn")}
    )

    def content(self) -> dict[str, Any]:
        """What its file holds, numbers rounded."""
        content = asdict(self)
        content["drawings"] = content.pop("figure_data")
        exact = json.dumps(content, allow_nan=False)
        return dict(json.loads(exact, parse_float=lambda text: round(float(text), _DECIMALS)))

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        """The record whose file holds this."""
        names = [one.name for one in fields(Measurement)]
        return cls(
            figure_data=content["drawings"],
            measured=tuple(
                Measurement(**{name: one[name] for name in names if name in one})
                for one in content["measured"]
            ),
            features=tuple(content["features"]),
            **{name: content[name] for name in ("experiment", "seed", "seconds", "versions")},
        )

    @property
    def feature_sets(self) -> list[str]:
        """Names of the feature sets, each once."""
        test = (str(one["file"]) for one in self.features if one.get("split") != "val")
        return list(dict.fromkeys(name.rsplit("-", 1)[0] for name in test))

    def with_earlier(self, earlier: "Record") -> "Record":
        """Add what an earlier record measured on other feature sets."""
        kept = set(earlier.feature_sets) - set(self.feature_sets)
        if not kept:
            return self
        own = {one["file"] for one in self.features}
        files = [one for one in earlier.features if one["file"] not in own]
        measured = [one for one in earlier.measured if one.feature_set in kept]
        data = {name: one for name, one in earlier.figure_data.items() if name in kept}
        names = dict.fromkeys([*earlier.versions, *self.versions])
        both = {
            name: [record.versions[name] for record in (earlier, self) if name in record.versions]
            for name in names
        }
        return replace(
            self,
            features=(*files, *self.features),
            measured=(*measured, *self.measured),
            figure_data={**data, **self.figure_data},
            versions={name: ", ".join(dict.fromkeys(numbers)) for name, numbers in both.items()},
        )

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `<experiment>.json` into a folder."""
        path = Path(folder) / f"{self.experiment}.json"
        write_text(path, json.dumps(self.content(), indent=1) + "\n")
        return path


def load_record(path: Path) -> Record:
    """The result in a file."""
    remedy, fault = "Measure it again, or remove it.", "is not a result of `protorect paper`"
    return Record.from_content(read_json(path, _RECORD, remedy, fault))


def load_records(folder: str | os.PathLike[str]) -> list[Record]:
    """All results in a folder, in the order of their file names."""
    paths = [Path(folder, name) for name in names_in(folder) if name.endswith(".json")]
    if not paths:
        raise DataError(f"{Path(folder)} holds no results; `protorect paper --results` makes some.")
    return list(map(load_record, paths))


def earlier_record(folder: Path, experiment: str, seed: int) -> Record | None:
    """The result that a folder already holds; DataError if its episodes had another seed."""
    path = folder / f"{experiment}.json"
    earlier = load_record(path) if path.exists() else None
    if earlier is not None and earlier.seed != seed:
        raise DataError(
            f"{path} was measured with seed {earlier.seed}, not {seed}. Give that --seed, or "
            "another --results."
        )
    return earlier


def measured_by_key(records: Iterable[Record]) -> dict[tuple[Key, int], Measurement]:
    """Every measured number by key and shot; experiments that share one measure the same.

    Further runs of a backbone, which differ in seed or recipe, are left out.
    """
    ordered = sorted(records, key=lambda record: record.experiment)
    numbers = (one for record in ordered for one in record.measured if not one.run)
    return {(one.key, one.shot): one for one in numbers}
