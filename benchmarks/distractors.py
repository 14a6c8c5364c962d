"""Out-of-distribution scores on distractor classes of a set, and on pictures of other sets.

Part of `python -m benchmarks.calibration_study`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor

from protorect.evaluation.features import FeatureTable
from protorect.evaluation.sampling import sample_episodes
from protorect.methods import method
from protorect.report.table import Table
from protorect.uncertainty.classify import classify
from protorect.uncertainty.thresholds import Thresholds

SHOTS = (1, 5)
QUERIES, SMALLER = 15, 10  # per class; where a set has too few samples
KINDS: dict[str, dict[str, Any]] = {"none": {}, "near": {"distractors": 2}, "far": {}}
FAR_SHARE = 5  # one strange picture for so many of the classes
PLAIN = method("cspn")  # its score is the cosine to the class mean


@torch.inference_mode()
def distractors(
    name: str, tables_of: dict[str, FeatureTable], episodes: int
) -> Iterator[dict[str, Any]]:
    """Areas under the ROC curve, and what the default threshold sets aside."""
    table, network = tables_of[name], name.partition("-")[2]
    others = [
        other
        for key, other in tables_of.items()
        if key != name and key.partition("-")[2] == network
    ]
    for kind, given in KINDS.items():
        if kind == "far" and not others:
            continue
        for shot in SHOTS:
            rows = []
            for seed, (support, labels, queries, truth) in enumerate(
                tasks(table, shot, episodes, **given)
            ):
                if kind == "far":
                    rng = np.random.default_rng(seed)
                    strange = others[seed % len(others)].rows
                    some = rng.choice(len(strange), len(queries) // FAR_SHARE, replace=False)
                    queries = torch.cat([queries, strange[torch.from_numpy(some)].float()])
                    truth = torch.cat([truth, truth.new_full((len(some),), -1)])
                rows.append(_detection(support, labels, queries, truth.numpy()))
            if rows:
                means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
                yield {"features": name, "kind": kind, "shot": shot, **means}
    print(name, "distractors", flush=True)


def _detection(
    support: Tensor, labels: Tensor, queries: Tensor, truth: NDArray[np.int64]
) -> dict[str, float]:
    result = classify(support.numpy(), labels.numpy(), queries.numpy())
    aside, unknown = result.ood > 1 - Thresholds().unknown, truth < 0
    measured = {"own": 100 * float(aside[result.best == truth].mean())}
    if unknown.any():
        plain = PLAIN(support[None], labels, queries[None])[0].amax(dim=1)
        measured |= {
            "area": float(roc_auc_score(unknown, result.ood)),
            "plain": float(roc_auc_score(unknown, -plain)),
            "found": 100 * float(aside[unknown].mean()),
        }
    return measured


def distractor_table(ood: list[dict[str, Any]]) -> Table:
    """One row per set, kind of distractors and number of labels, and the means."""
    return Table(
        "Area under the ROC curve of the score, and of the plain cosine to the class mean; percent "
        "of rightly labeled pictures, and of distractors, above the default threshold.",
        ["features", "distractors", "labels", "score", "plain", "own aside", "found"],
        [
            [
                *(f"`{row['features']}`", row["kind"], str(row["shot"])),
                *(f"{row[key]:.3f}" if key in row else "" for key in ("area", "plain")),
                *(f"{row[key]:.1f}" if key in row else "" for key in ("own", "found")),
            ]
            for row in [*ood, *_means(ood)]
        ],
    )


def _means(ood: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for kind in dict.fromkeys(row["kind"] for row in ood):
        own = [row for row in ood if row["kind"] == kind]
        keys = [key for key in ("area", "plain", "own", "found") if key in own[0]]
        means = {key: float(np.mean([row[key] for row in own])) for key in keys}
        yield {"features": "mean", "kind": kind, "shot": "all", **means}


def tasks(
    table: FeatureTable, shot: int, episodes: int, **given: Any
) -> Iterator[tuple[Tensor, ...]]:
    """Support, labels, queries and their classes; nothing if the set is too small."""
    for query in (QUERIES, SMALLER):
        try:
            shape = {"way": 5, "shot": shot, "query": query, "groups": table.groups} | given
            drawn = sample_episodes(table.labels, episodes=episodes, seed=1, **shape)
        except ValueError:
            continue
        labels = torch.arange(drawn.way).repeat_interleave(shot)
        for support, query_rows, truth in zip(
            drawn.support, drawn.query, drawn.query_way, strict=True
        ):
            rows = (table.rows[torch.from_numpy(part)] for part in (support.ravel(), query_rows))
            yield next(rows).float(), labels, next(rows).float(), torch.from_numpy(truth)
        return
