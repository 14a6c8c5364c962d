import pytest
import torch

from protorect.methods._solvers.sinkhorn import (
    balance,
    balance_exactly,
    class_proportions,
)
from reference import transduction as reference


@pytest.fixture
def costs():
    generator = torch.Generator().manual_seed(1)
    costs = torch.rand(6, 4, 24, generator=generator, dtype=torch.float64)
    costs[:, 0] += 0.5  # a class that is far from all queries
    return costs


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 10.0, 100.0])
def test_exact_balance_is_sinkhorns_assignment(costs, sharpness):
    start = torch.zeros(6, 4, 1, dtype=torch.float64)
    log_p, potentials = balance_exactly(-sharpness * costs, start)
    assert (log_p.exp().sum(dim=2) - 6).abs().max() < 2e-8
    torch.testing.assert_close(
        log_p, torch.log_softmax(-sharpness * costs + potentials, dim=1), atol=1e-9, rtol=0
    )
    if sharpness <= 10:
        expected = torch.stack([reference.sinkhorn(c.T, sharpness).T for c in costs])
        torch.testing.assert_close(log_p.exp(), expected, atol=1e-6, rtol=0)


def test_few_iterations_balance_approximately(costs):
    p, potentials = balance(-10 * costs)
    torch.testing.assert_close(p, torch.softmax(-10 * costs + potentials, dim=1))
    assert (p.sum(dim=2) - 6).abs().max() < 0.5
    assert (torch.softmax(-10 * costs, dim=1).sum(dim=2) - 6).abs().max() > 3


def test_free_proportions_are_more_likely_where_classes_are_unbalanced():
    def ratio(*counts):
        labels = torch.arange(3).repeat_interleave(torch.tensor(counts))
        return class_proportions(5 * torch.nn.functional.one_hot(labels).T.double()[None])[1].item()

    assert ratio(10, 10, 10) == pytest.approx(0, abs=1e-9)
    assert ratio(28, 1, 1) > ratio(16, 8, 6) > 0.5
