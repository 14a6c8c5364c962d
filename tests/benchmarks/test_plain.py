"""The plain implementations predict the same classes as the methods they are compared with."""

import numpy as np
import pytest
import torch
from benchmarks.plain_bd_cspn import plain_bd_cspn
from benchmarks.plain_laplacian_shot import plain_laplacian_shot
from benchmarks.plain_pt_map import plain_pt_map
from benchmarks.plain_tim import plain_tim

from helpers.clusters import clusters
from protorect import evaluate, sample_episodes

BATCHED = {
    "bd-cspn": lambda features, episodes: plain_bd_cspn(features, episodes, chunk=7),
    "laplacian-shot": plain_laplacian_shot,
}
ONE_TASK_AT_A_TIME = {
    "tim:iterations=30": lambda features, episodes: plain_tim(features, episodes, 30),
    "pt-map": plain_pt_map,
}


@pytest.mark.parametrize("shot", [1, 5])
@pytest.mark.parametrize("name", BATCHED)
def test_same_predictions(name, shot):
    features, labels = clusters()
    assert agreement(name, BATCHED[name], features, labels, shot, episodes=30) > 0.999


@pytest.mark.parametrize("shot", [1, 5])
@pytest.mark.parametrize("name", ONE_TASK_AT_A_TIME)
def test_same_predictions_on_non_negative_features(name, shot):
    features, labels = clusters(spread=2.0)
    features = np.maximum(features, 0)
    assert agreement(name, ONE_TASK_AT_A_TIME[name], features, labels, shot, episodes=6) > 0.995


def agreement(name, plain, features, labels, shot, episodes):
    """Share of equal predictions; rounding may decide ties."""
    tasks = sample_episodes(labels, shot=shot, episodes=episodes)
    (result,) = evaluate(features, labels, [name], shot=shot, episodes=tasks)
    return (plain(torch.from_numpy(features), tasks).numpy() == result.predictions).mean()
