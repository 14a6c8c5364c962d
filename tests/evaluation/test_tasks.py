"""Episodes as batches of tensors."""

import numpy as np
import torch

from helpers.clusters import clusters
from protorect import sample_episodes
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.tasks import task_batches


def test_batches_hold_the_rows_of_all_episodes_in_their_order(monkeypatch):
    features, labels = clusters()
    episodes = sample_episodes(labels, way=3, shot=2, query=4, episodes=7)
    monkeypatch.setattr("protorect.evaluation.tasks.BATCH_BYTES", 3 * 18 * (24 + 8 * 3) * 4)
    sizes = []
    for part, support, positions, query in task_batches(
        FeatureTable.of(features, labels), episodes
    ):
        assert positions.tolist() == [0, 0, 1, 1, 2, 2]
        expected = features[episodes.support[part].reshape(-1, 6)]
        np.testing.assert_array_equal(support.rows.numpy(), expected)
        np.testing.assert_array_equal(query.rows.numpy(), features[episodes.query[part]])
        norms = query.materialize().norm(dim=-1)
        torch.testing.assert_close(norms, torch.ones_like(norms))
        sizes.append(part.stop - part.start)
    assert sizes == [3, 3, 1]
