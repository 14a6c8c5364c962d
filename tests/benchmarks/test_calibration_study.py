"""The study of calibration: its tasks, its models without a network, and its tables."""

import numpy as np
import pytest
from benchmarks.calibration_study import calibration, calibration_error, classified, tables
from benchmarks.distractors import distractors, tasks

from benchmarks import calibration_study
from helpers.clusters import clusters
from protorect.evaluation.features import FeatureTable


def table(seed):
    features, labels = clusters(classes=8, each=20, dim=16, spread=1.5, seed=seed)
    return FeatureTable.of(features, labels)


def test_calibration_error_by_hand():
    stated, right = np.array([0.9, 0.9, 0.5, 0.5]), np.array([1, 0, 1, 1])
    assert calibration_error(stated, right) == pytest.approx(100 * (0.8 + 1.0) / 4)


def test_tasks_are_empty_where_a_set_is_too_small():
    assert len(list(tasks(table(0), 1, 3))) == 3
    assert not list(tasks(table(0), 1, 3, way=20))


def test_every_set_has_a_model_without_its_network_and_its_pictures(monkeypatch):
    monkeypatch.setattr(calibration_study, "SETTINGS", {"balanced": {}})
    monkeypatch.setattr(calibration_study, "SHOTS", (1, 2))
    fitted = []
    monkeypatch.setattr(
        calibration_study, "_fitted", lambda targets: fitted.append(len(targets)) or (1, 0, 0, 0, 0)
    )
    names = ["a-net", "b-net", "a-other", "c-third"]
    episodes = [one for seed, name in enumerate(names) for one in classified(name, table(seed), 2)]
    rows = calibration(episodes)
    assert fitted == [4, 8, 8, 12]  # two numbers of labels, two tasks each, of the other sets
    assert [row["shot"] for row in rows] == [1, 2] * 4
    sets = {name: table(seed) for seed, name in enumerate(names)}
    ood = [row for name in names[:3] for row in distractors(name, sets, 2)]
    assert [row["kind"] for row in ood[:6]] == ["none", "none", "near", "near", "far", "far"]
    assert len(ood) == 16  # the third set has no other set of its network
    found = tables({"calibration": rows, "ood": ood})
    assert [len(found[name].rows) for name in ("shots", "sets", "distractors")] == [2, 4, 19]
