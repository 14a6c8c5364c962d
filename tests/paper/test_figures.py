"""The data of the figures, compared with `evaluate` and with prototypes computed by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from protorect import evaluate, sample_episodes
from protorect.paper import figures
from protorect.paper.figures import figure_data


@pytest.fixture(scope="module")
def figures_job(job):
    return replace(job, methods=("cspn", "bd-i"))


def normalized(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_curves_and_shapes(figures_job):
    data, test = figure_data(figures_job)[1], figures_job.test
    curve = data["against_z"]["classes"]["1"]["accuracy"]
    results = evaluate(
        test.features, test.labels, "bd-i:z=4,weighting=classes", shot=[1, 5], episodes=20
    )
    assert curve[4] == results[0].accuracy
    assert len(curve) == 16
    assert np.shape(data["episode"]["query"]) == (75, 2)
    assert np.shape(data["episode"]["expected"]) == (5, 2)
    assert np.shape(data["shift"]["centres"]) == (3, 2)
    bias = data["bias"]["1"]
    assert bias["mean"]["basic"] > bias["mean"]["classes"] > 0
    assert len(bias["drawn"]["basic"]) == bias["classes"] == 12


def test_expected_accuracy_is_equation_25(figures_job):
    data = figure_data(figures_job)[1]["against_z"]
    for shot in (1, 5):
        by_hand = [
            data["eta"] * data["expectation"]
            / math.sqrt(data["variance"] / (shot + z) + data["expectation"])
            for z in range(16)
        ]  # fmt: skip
        np.testing.assert_allclose(data["expected"][str(shot)], by_hand)


@pytest.fixture(scope="module")
def projected(figures_job):
    """The two projected episodes before their projection, and support and queries (normalized)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "_projected", lambda parts, seed: parts)
        data = figure_data(figures_job)[1]
    number = data["episode"]["number"]
    episodes = sample_episodes(figures_job.test.labels, shot=5, episodes=20)
    unit = normalized(figures_job.test.features.astype(np.float64))
    return data, unit[episodes.support[number, :, 0]], unit[episodes.query[number]]


def test_the_rectified_prototype_is_that_of_bd_i_with_class_weights(projected):
    data, support, query = projected
    scores = query @ support.T
    weights = np.exp(10 * scores) / np.exp(10 * scores).sum(axis=1, keepdims=True)
    support_scores = support @ support.T
    support_weights = np.exp(10 * support_scores) / np.exp(10 * support_scores).sum(axis=1)
    for way in range(5):
        own = np.flatnonzero(scores.argmax(axis=1) == way)
        own = own[np.argsort(-scores[own, way])][:8]
        total = support_weights[way, way] * support[way] + weights[own, way] @ query[own]
        expected = total / (support_weights[way, way] + weights[own, way].sum())
        np.testing.assert_allclose(data["episode"]["rectified"][way], expected, atol=1e-5)
    np.testing.assert_allclose(data["episode"]["basic"], support, atol=1e-6)


def test_the_expected_prototype_is_the_mean_of_support_and_queries(projected):
    data, support, query = projected
    for way in range(5):
        samples = np.concatenate([support[[way]], query[15 * way : 15 * (way + 1)]])
        np.testing.assert_allclose(
            data["episode"]["expected"][way], samples.mean(axis=0), atol=1e-6
        )


def test_the_shift_moves_the_mean_of_the_queries_to_that_of_the_support(projected):
    data, support, query = projected
    shifted = normalized(query + support.mean(axis=0) - query.mean(axis=0))
    np.testing.assert_allclose(data["shift"]["after"], shifted, atol=1e-6)
    means = [part.mean(axis=0) for part in (support, query, shifted)]
    np.testing.assert_allclose(data["shift"]["centres"], means, atol=1e-6)


def test_the_bias_by_hand(figures_job):
    job = replace(figures_job, settings=[replace(figures_job.settings[0], episodes=3)])
    bias, test = figure_data(job)[1]["bias"]["1"], job.test
    episodes = sample_episodes(test.labels, shot=5, episodes=3).with_shot(1)
    unit = normalized(test.features)
    angles = {}
    for row in episodes.support.reshape(-1):
        label = test.labels[row]
        cosine = unit[row] @ normalized(unit[test.labels == label].mean(axis=0))
        angles.setdefault(label, []).append(np.degrees(np.arccos(cosine)))
    assert bias["classes"] == len(angles)
    expected = np.mean([np.mean(of_class) for of_class in angles.values()])
    assert bias["mean"]["basic"] == pytest.approx(expected, abs=1e-3)
