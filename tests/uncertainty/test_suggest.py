"""Which samples to label next."""

import torch
from torch.nn.functional import normalize

from protorect.uncertainty.suggest import diverse_order, near_duplicates_last


def test_a_diverse_choice_has_one_of_every_cluster_first():
    torch.manual_seed(0)
    centers = torch.eye(6, 20)
    labels = torch.arange(6).repeat_interleave(30)
    rows = centers[labels] + 0.02 * torch.randn(180, 20)
    chosen = diverse_order(rows, 6)
    assert sorted(labels[torch.from_numpy(chosen)].tolist()) == list(range(6))


def test_each_is_the_farthest_from_those_before():
    torch.manual_seed(1)
    rows = torch.nn.functional.normalize(torch.randn(40, 5), dim=1)
    chosen = diverse_order(rows, 10).tolist()
    assert len(set(chosen)) == 10
    cosines = rows @ rows.T
    for count in range(1, 10):
        nearest = cosines[:, chosen[:count]].amax(dim=1)
        nearest[chosen[:count]] = 2
        assert nearest[chosen[count]] == nearest.min()


def test_a_cluster_without_a_known_sample_comes_first():
    torch.manual_seed(2)
    labels = torch.arange(4).repeat_interleave(20)
    rows = torch.eye(4, 12)[labels] + 0.02 * torch.randn(80, 12)
    chosen = diverse_order(rows, 2, rows[[0, 20]])
    assert sorted(labels[torch.from_numpy(chosen)].tolist()) == [2, 3]


def test_there_are_no_more_than_there_are():
    assert len(diverse_order(torch.randn(3, 4), 10)) == 3
    assert len(diverse_order(torch.empty(0, 4), 10)) == 0


def test_many_known_rows_are_compared_in_blocks():
    generator = torch.Generator().manual_seed(3)
    rows, known = (torch.randn(n, 8, generator=generator) for n in (50, 1500))
    nearest = (normalize(rows, dim=1) @ normalize(known, dim=1).T).amax(dim=1)
    assert diverse_order(rows, 1, known).tolist() == [int(nearest.argmin())]


def test_near_duplicates_come_last_in_their_order():
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0], [2.0, 0.0], [-1.0, 0.0]])
    assert near_duplicates_last(rows).tolist() == [0, 2, 4, 1, 3]
