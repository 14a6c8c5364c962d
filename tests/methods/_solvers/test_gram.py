import pytest
import torch

from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.gram import nearest_neighbors, span_of


@pytest.mark.parametrize("dim", [5, 9])  # fewer and more dimensions than samples
def test_distances_from_inner_products(dim):
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(2, 3, 7, generator=generator)
    samples = torch.randn(2, 7, dim, generator=generator)
    squares = samples.square().sum(dim=2).unsqueeze(1)
    expected = torch.cdist(weights @ samples, samples) ** 2 - squares
    span = span_of(samples)
    distances = span.squared_distances_by_class(span.combine(weights))
    torch.testing.assert_close(distances, expected, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("count", [0, 2, 4, 5, 50])
def test_nearest_neighbors_are_the_highest_cosines_of_others(count):
    samples = torch.randn(2, 8, 5, generator=torch.Generator().manual_seed(0))
    rows = UnitRows.of(samples)
    cosines = rows.cosines_with(rows).contiguous()
    before = cosines.clone()
    values, positions = nearest_neighbors(cosines, count)
    assert torch.equal(cosines, before)
    for task in range(2):
        for i in range(8):
            others = sorted((j for j in range(8) if j != i), key=lambda j: -before[task, i, j])
            assert positions[task, i].tolist() == others[:count]
    assert torch.equal(values, before.gather(-1, positions))
