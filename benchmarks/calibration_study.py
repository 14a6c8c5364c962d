"""`python -m benchmarks.calibration_study PICTURES-NETWORK.npz ...`: what is stated, what is true.

Give features of validation classes only; a file is named after its pictures and its network. Every
set is also calibrated by a model of the temperature that was fitted without its network and without
its pictures. Writes results/calibration.json and the tables of docs/calibration.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.distractors import distractor_table, distractors, tasks
from benchmarks.documents import save_results
from protorect._utils.versions import versions
from protorect.evaluation.features import FeatureTable, feature_table
from protorect.methods import method
from protorect.report.table import Table
from protorect.uncertainty.calibration import (
    MODEL,
    calibrated_temperature,
    matching_temperature,
    mean_lead,
    model_values,
)
from protorect.uncertainty.classify import DEFAULT_METHOD
from protorect.uncertainty.held_out import HeldOut, hold_out

SETTINGS: dict[str, dict[str, Any]] = {
    "balanced": {},
    "Dirichlet 1": {"dirichlet": 1.0},
    "5 distractors": {"distractors": 5},
    "2 of 5 classes present": {"present": 2},
    "20 ways": {"way": 20},
}
SHOTS = (1, 2, 5)
BINS = 15
RIDGE = 1.0  # of the least squares


class Episode(NamedTuple):
    """One task of a set, classified."""

    pictures: str
    network: str
    setting: str
    support: Tensor
    labels: Tensor
    queries: Tensor
    truth: Tensor  # -1: a distractor
    scores: Tensor
    held_out: HeldOut

    @property
    def shot(self) -> int:
        """Labels per class."""
        return len(self.labels) // self.scores.shape[1]

    def values(self) -> tuple[float, ...]:
        """The values of the model of the temperature."""
        return model_values(self.support, self.labels, self.queries, self.scores)

    def best_scale(self) -> float:
        """log(lead / temperature) of the temperature that states the accuracy."""
        scores = self.scores[self.truth >= 0]
        right = (scores.argmax(dim=1) == self.truth[self.truth >= 0]).float()
        share = (float(right.sum()) + 0.5) / (len(right) + 1)
        share = min(max(share, 1 / scores.shape[1] + 0.02), 0.99)
        return math.log(mean_lead(self.scores) / matching_temperature(scores, share))

    def stated(self, model: tuple[float, ...]) -> NDArray[np.float64]:
        """Probability of each predicted class and whether it is right, (2, n); no distractors."""
        task = self.support, self.labels, self.queries, self.scores, self.held_out
        top = torch.softmax(self.scores / (calibrated_temperature(*task, model) or 1.0), -1).max(-1)
        known = self.truth >= 0
        return torch.stack([top.values, top.indices == self.truth])[:, known].double().numpy()


def main() -> None:
    """Measure, and write the results and the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--episodes", type=int, default=40)
    options = parser.parse_args()
    tables_of = {path.stem: feature_table(path) for path in options.features}
    found = [
        episode
        for name, table in tables_of.items()
        for episode in classified(name, table, options.episodes)
    ]
    results = {
        "episodes": options.episodes,
        "model": MODEL,
        "calibration": calibration(found),
        "ood": [
            row for name in tables_of for row in distractors(name, tables_of, options.episodes // 2)
        ],
        "versions": versions(),
    }
    save_results("calibration", results)


@torch.inference_mode()
def classified(name: str, table: FeatureTable, episodes: int) -> Iterator[Episode]:
    """The tasks of a set, without those for which it is too small."""
    chosen, (pictures, _, network) = method(DEFAULT_METHOD), name.partition("-")
    for setting, given in SETTINGS.items():
        count = episodes * 5 // given.get("way", 5)
        for shot in SHOTS:
            for task in tasks(table, shot, count, **given):
                support, labels, queries, _ = task
                scores = chosen(support[None], labels, queries[None])[0]
                held_out = hold_out(chosen, support, labels, queries)
                yield Episode(pictures, network, setting, *task, scores, held_out)
        print(name, setting, flush=True)


@torch.inference_mode()
def calibration(episodes: list[Episode]) -> list[dict[str, Any]]:
    """Error and excess of the stated probabilities, by set, setting and number of labels."""
    targets = [(one.values(), one.best_scale()) for one in episodes]
    rows, keys = [], dict.fromkeys((e.pictures, e.network, e.setting, e.shot) for e in episodes)
    models = {
        (pictures, network): _fitted(
            [
                target
                for target, one in zip(targets, episodes, strict=True)
                if one.pictures != pictures and one.network != network
            ]
        )
        for pictures, network in dict.fromkeys(key[:2] for key in keys)
    }
    for key in keys:
        own = [e for e in episodes if (e.pictures, e.network, e.setting, e.shot) == key]
        measured = {}
        for name, model in {"": MODEL, "left_out_": models[key[:2]]}.items():
            stated, right = np.concatenate([one.stated(model) for one in own], axis=1)
            measured |= {
                f"{name}ece": calibration_error(stated, right),
                f"{name}excess": 100 * float((stated - right).mean()),
            }
        measured["accuracy"] = 100 * float(right.mean())
        rows.append(
            dict(zip(("pictures", "network", "setting", "shot"), key, strict=True)) | measured
        )
    return rows


def _fitted(targets: list[tuple[tuple[float, ...], float]]) -> tuple[float, ...]:
    """The factors with the least squared error."""
    values, best = (np.array(column) for column in zip(*targets, strict=True))
    gram = values.T @ values + RIDGE * np.eye(values.shape[1])
    return tuple(np.linalg.solve(gram, values.T @ best).tolist())


def calibration_error(stated: NDArray[Any], right: NDArray[Any]) -> float:
    """Expected calibration error in percentage points, 15 bins of equal width."""
    bins = np.minimum((stated * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=stated - right, minlength=BINS)
    return 100 * float(np.abs(gaps).sum()) / len(right)


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Calibration by number of labels and by set, and out-of-distribution scores."""
    rows = results["calibration"]

    def sets(row: dict[str, Any]) -> str:
        return f"{row['pictures']}-{row['network']}"

    return {
        "shots": _calibration_table("labels per class", rows, lambda row: str(row["shot"])),
        "settings": _calibration_table("setting", rows, lambda row: str(row["setting"])),
        "sets": _calibration_table("features", rows, sets),
        "distractors": distractor_table(results["ood"]),
    }


def _calibration_table(
    title: str, rows: list[dict[str, Any]], of: Callable[[dict[str, Any]], str]
) -> Table:
    columns = ("ece", "left_out_ece")
    header = ["ECE mean", "worst", "stated - right, lowest", "highest"]
    body = []
    for value in dict.fromkeys(map(of, rows)):
        own = [row for row in rows if of(row) == value]
        cells = []
        for key in columns:
            errors = [row[key] for row in own]
            excess = [row[key.replace("ece", "excess")] for row in own]
            cells += [f"{np.mean(errors):.1f}", f"{max(errors):.1f}"]
            cells += [f"{min(excess):+.1f}", f"{max(excess):+.1f}"]
        body.append([value, *cells])
    return Table(
        "The last four columns: by a model fitted without the network and the pictures of the set.",
        [title, *header, *header],
        body,
    )


if __name__ == "__main__":
    main()
