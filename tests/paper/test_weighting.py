"""The study of eq. (6), compared with `evaluate` and with weights computed by hand."""

from dataclasses import replace

import numpy as np
import pytest

from protorect import evaluate, sample_episodes
from protorect.paper.feature_sets import FeatureSet
from protorect.paper.weighting import EPSILONS, weighting, weighting_elements


def test_curves_over_epsilon_pass_through_the_methods_of_the_paper(job):
    study = weighting(job)[1]
    spelled = ["cspn", "bd-cspn", "bd-cspn-classes"]
    results = evaluate(job.test.features, job.test.labels, spelled, shot=[1, 5], episodes=20)
    accuracy = {(one.method, one.shot): one.accuracy for one in results}
    at = EPSILONS.index(10.0)
    for shot in (1, 5):
        curves = study["shots"][str(shot)]
        assert curves["cspn"] == accuracy["cspn", shot]
        assert curves["samples"]["accuracy"][at] == accuracy["bd-cspn", shot]
        assert curves["classes"]["accuracy"][at] == accuracy["bd-cspn-classes", shot]
        gain = accuracy["bd-cspn", shot] - accuracy["cspn", shot]
        assert curves["samples"]["gain"][at] == pytest.approx(gain)
    shares = study["shots"]["1"]["samples"]["support_share"]
    assert shares == sorted(shares)  # a larger epsilon gives the labeled sample more weight
    assert shares[-1] > 0.99
    assert -1 < study["shots"]["1"]["cosine"] < 1


def test_support_share_and_cosine_by_hand(job):
    # One episode, one class at a time, as eq. (6) is printed.
    job = replace(job, settings=[replace(job.settings[0], episodes=2)])
    curves = weighting(job)[1]["shots"]["1"]
    features = job.test.features
    episodes = sample_episodes(job.test.labels, shot=5, episodes=2).with_shot(1)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    shares, cosines = [], []
    for support_rows, query_rows in zip(episodes.support, episodes.query, strict=True):
        support, query = unit[support_rows[:, 0]], unit[query_rows]
        query = query + support.mean(axis=0) - query.mean(axis=0)
        query /= np.linalg.norm(query, axis=1, keepdims=True)
        scores = query @ support.T
        for way in range(5):
            own = np.sort(scores[scores.argmax(axis=1) == way, way])[::-1][:8]
            cosines.append(own)
            shares.append(np.exp(10) / (np.exp(10) + np.exp(10 * own).sum()))
    share = curves["samples"]["support_share"][EPSILONS.index(10.0)]
    assert share == pytest.approx(np.mean(shares), abs=1e-4)
    assert curves["cosine"] == pytest.approx(np.concatenate(cosines).mean(), abs=1e-4)


def test_where_the_paper_prints_no_cspn_accuracies_are_compared(job):
    study = weighting(job)[1]
    table, text, figures = weighting_elements(study, FeatureSet("mini-imagenet", "conv64"))
    assert not any("published" in row[0] for row in table.rows)
    assert "the paper prints 60.48 for BD-CSPN, and none for CSPN" in text
    assert all("dashed" not in one.caption and "published" not in one.svg for one in figures)
    table, text, figures = weighting_elements(study, FeatureSet("omniglot", "conv64"))
    assert table.rows[-1][0] == "published, ε = 10"
    assert "the paper's gain is +2.22" in text
    assert all("dashed" in one.caption for one in figures)
