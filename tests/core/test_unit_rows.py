"""`UnitRows` stores factors of rows; its results must be those of the materialized rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from protorect import DataError
from protorect.core.unit_rows import RawRows, UnitRows, evenly_spaced, inverse, row_norms
from reference import rectification as paper

EXACT = {"rtol": 0, "atol": 1e-12}


def normal(*shape: int, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=random, dtype=torch.float64)


def rows() -> Tensor:
    """(3, 7, 5), of many norms, two of them zero."""
    features = normal(3, 7, 5) * torch.logspace(-3, 3, 7, dtype=torch.float64).unsqueeze(-1)
    features[0, 2] = 0
    features[2, 6] = 0
    return features


def shift() -> Tensor:
    return 0.4 * normal(3, 5, seed=1)


@pytest.fixture(params=["plain", "shifted"])
def unit(request) -> UnitRows:
    plain = UnitRows.of(rows())
    return plain if request.param == "plain" else plain.shifted(shift())


def directions() -> Tensor:
    return normal(3, 4, 5, seed=2) * torch.tensor(
        [[0.01], [1.0], [7.0], [0.0]], dtype=torch.float64
    )


def each(function, features: Tensor, *others: Tensor) -> Tensor:
    """A function of the reference on every row of every task."""
    return torch.from_numpy(
        np.array(
            [
                [function(row, *(other[task].numpy() for other in others)) for row in rows.numpy()]
                for task, rows in enumerate(features)
            ]
        )
    )


# --- materialized rows --------------------------------------------------------------------------


def test_materialized_rows_are_normalized():
    materialized = UnitRows.of(rows()).materialize()
    torch.testing.assert_close(materialized, each(paper.normalized, rows()), **EXACT)
    assert not materialized[0, 2].any()


def test_materialized_shifted_rows_are_renormalized():
    materialized = UnitRows.of(rows()).shifted(shift()).materialize()
    torch.testing.assert_close(materialized, each(paper.shifted, rows(), shift()), **EXACT)
    torch.testing.assert_close(materialized.norm(dim=-1), torch.ones(3, 7).double(), **EXACT)


def test_cosines_are_those_of_the_materialized_rows(unit):
    got = unit.cosines(directions())
    expected = each(
        lambda row, *ways: [paper.cosine(row, way) for way in ways[0]],
        unit.materialize(),
        directions(),
    )
    torch.testing.assert_close(got, expected, **EXACT)
    assert not got[..., 3].any()  # the zero direction


def test_products_are_those_of_the_materialized_rows(unit):
    expected = unit.materialize() @ directions().mT
    torch.testing.assert_close(unit.products(directions()), expected, **EXACT)


def test_cosines_with_other_rows(unit):
    others = UnitRows.of(normal(3, 6, 5, seed=4))
    expected = unit.materialize() @ others.materialize().mT
    torch.testing.assert_close(unit.cosines_with(others), expected, **EXACT)


def test_raw_rows_keep_their_norm():
    for features in (rows(), UnitRows.of(rows())):
        plain = RawRows.of(features)
        assert torch.equal(plain.rows, rows())
        assert torch.equal(plain.products(directions()), (directions() @ rows().mT).mT)
        torch.testing.assert_close(plain.mean(), rows().mean(dim=1), **EXACT)
    assert RawRows.of(rows().half()).rows.dtype == torch.float32


def test_weighted_sums_are_those_of_the_materialized_rows(unit):
    weights = normal(3, 7, 4, seed=3)
    expected = torch.einsum("tnw,tnd->twd", weights, unit.materialize())
    torch.testing.assert_close(unit.weighted_sum(weights), expected, **EXACT)


def test_weights_may_be_shared_by_the_tasks(unit):
    weights = normal(7, 4, seed=3)
    expected = unit.weighted_sum(weights.expand(3, 7, 4))
    torch.testing.assert_close(unit.weighted_sum(weights), expected, **EXACT)


def test_the_mean_is_that_of_the_materialized_rows(unit):
    torch.testing.assert_close(unit.mean(), unit.materialize().mean(dim=-2), **EXACT)


def test_shifted_cosines_equal_shifted_and_cosines():
    plain = UnitRows.of(rows())
    unit, cosines = plain.shifted_cosines(shift(), directions())
    expected = plain.shifted(shift())
    torch.testing.assert_close(unit.materialize(), expected.materialize(), **EXACT)
    torch.testing.assert_close(cosines, expected.cosines(directions()), **EXACT)


def test_a_subsample_has_some_of_the_rows_with_their_shift(unit):
    some = evenly_spaced(7, 3)
    assert torch.equal(unit.subsample(some).materialize(), unit.materialize()[:, [0, 3, 6]])


@pytest.mark.parametrize(("n", "maximum", "count"), [(0, 3, 0), (3, 3, 3), (4, 3, 2), (9, 4, 3)])
def test_evenly_spaced_rows_are_at_most_so_many(n, maximum, count):
    assert len(range(n)[evenly_spaced(n, maximum)]) == count


# --- edge cases ---------------------------------------------------------------------------------


def test_shifted_rows_cannot_be_shifted_again():
    unit = UnitRows.of(rows()).shifted(shift())
    with pytest.raises(ValueError, match="shifted already"):
        unit.shifted(shift())
    with pytest.raises(ValueError, match="shifted already"):
        unit.shifted_cosines(shift(), directions())


def test_shifted_rows_have_no_raw_rows():
    with pytest.raises(ValueError, match="are shifted"):
        RawRows.of(UnitRows.of(rows()).shifted(shift()))


def test_a_shift_of_zero_changes_nothing():
    unit = UnitRows.of(rows()).shifted(torch.zeros(3, 5, dtype=torch.float64))
    torch.testing.assert_close(unit.materialize(), UnitRows.of(rows()).materialize(), **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_shifted_to_zero_stays_zero(dtype):
    features = torch.tensor([[[1.0, 2.0, 3.0], [3.0, -1.0, 0.5]]], dtype=dtype)
    away = -UnitRows.of(features).materialize()[:, 0]
    unit = UnitRows.of(features).shifted(away)
    assert not unit.materialize()[0, 0].any()
    assert not unit.cosines(torch.eye(3, dtype=dtype).unsqueeze(0))[0, 0].any()
    assert unit.materialize()[0, 1].norm() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_errors_of_zero_are_not_normalized(dtype):
    """A hundred tasks of one row each, shifted to zero but for rounding."""
    unit = UnitRows.of(normal(100, 1, 16).to(dtype))
    assert not unit.shifted(-unit.materialize().squeeze(1)).materialize().any()


def test_what_is_shifted_to_nearly_zero_is_zero():
    unit = UnitRows.of(normal(100, 1, 16))
    away = -unit.materialize().squeeze(1) * (1 + 1e-9)
    assert not unit.shifted(away).materialize().any()
    zero = UnitRows.of(torch.zeros(1, 1, 3, dtype=torch.float64))
    assert not zero.shifted(torch.full((1, 3), 1e-9, dtype=torch.float64)).materialize().any()


@pytest.mark.parametrize(
    ("largest", "fits"), [(1e-16, False), (1e-13, True), (1e14, True), (1e17, False)]
)
def test_squares_of_raw_rows_are_in_range_or_refused(largest, fits):
    raw = RawRows.of(torch.full((1, 2, 3), largest))
    if fits:
        assert raw.with_squares() is raw
    else:
        with pytest.raises(DataError, match="squares are out of the range of torch.float32"):
            raw.with_squares()


def test_unit_rows_of_unit_rows_are_the_same():
    unit = UnitRows.of(rows())
    assert UnitRows.of(unit) is unit


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_stored_in_float32_or_better(dtype):
    unit = UnitRows.of(rows().to(dtype))
    computed = torch.float64 if dtype == torch.float64 else torch.float32
    assert unit.rows.dtype == unit.scale.dtype == unit.materialize().dtype == computed
    assert row_norms(rows().to(dtype)).dtype == computed


def test_inputs_are_not_modified():
    inputs = [rows(), shift(), directions(), normal(3, 7, 4, seed=3)]
    before = [part.clone() for part in inputs]
    plain = UnitRows.of(inputs[0])
    unit, _ = plain.shifted_cosines(inputs[1], inputs[2])
    stored = [unit.rows.clone(), unit.scale.clone(), unit.gain.clone(), unit.shift.clone()]
    for each_unit in (plain, unit):
        each_unit.cosines(inputs[2])
        each_unit.weighted_sum(inputs[3])
        each_unit.mean()
        each_unit.materialize()
    for one, other in zip(inputs, before, strict=True):
        assert torch.equal(one, other)
    for one, other in zip((unit.rows, unit.scale, unit.gain, unit.shift), stored, strict=True):
        assert torch.equal(one, other)


# --- norms --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 1e14, 1e16, 1e30, 1e37, 1e-14, 1e-16, 1e-30, 1e-37])
def test_row_norms_are_exact_at_any_size(size):
    features = (rows()[:, 3:4] * size).float()  # norms about 1 times `size`
    got = row_norms(features)
    expected = each(paper.length, features.double())
    torch.testing.assert_close(got.double(), expected, rtol=1e-6, atol=0)


def test_row_norms_of_all_sizes_in_one_table():
    sizes = torch.tensor([0.0, 1e-38, 1e-25, 1e-5, 1.0, 1e5, 1e25, 1e38])
    features = torch.stack([sizes, -2 * sizes, 2 * sizes], dim=-1)  # 3 times as long
    torch.testing.assert_close(row_norms(features), 3 * sizes, rtol=1e-6, atol=0)


def test_row_norms_of_float64_beyond_float32():
    features = torch.tensor([[3e200, 4e200], [3e-200, 4e-200], [3.0, 4.0]], dtype=torch.float64)
    expected = torch.tensor([5e200, 5e-200, 5.0], dtype=torch.float64)
    torch.testing.assert_close(row_norms(features), expected, rtol=1e-12, atol=0)


def test_row_norms_of_float16_do_not_leave_its_range():
    features = torch.full((1, 100), 6e4, dtype=torch.float16)
    assert row_norms(features).item() == pytest.approx(10 * float(features[0, 0]), rel=1e-6)


def test_row_norms_do_not_modify_the_rows():
    features = torch.tensor([[1e30, 2e30], [0.0, 0.0], [1e-30, 0.0]])
    before = features.clone()
    row_norms(features)
    assert torch.equal(features, before)


def test_inverse():
    assert inverse(torch.tensor([0.0, 0.5, 4.0])).tolist() == [0.0, 2.0, 0.25]
    assert math.isclose(inverse(torch.tensor(1e30)).item(), 1e-30, rel_tol=1e-6)


def test_a_sum_at_places_is_the_sum_with_zero_weights_elsewhere(unit):
    places = torch.tensor([[0, 6, 2], [5, 6, 1]]).expand(3, 2, 3)  # (tasks, k, ways)
    weights = normal(3, 2, 3, seed=4)
    everywhere = torch.zeros(3, 7, 3, dtype=torch.float64).scatter_add(-2, places, weights)
    got = unit.weighted_sum_at(places, weights)
    torch.testing.assert_close(got, unit.weighted_sum(everywhere), **EXACT)
    assert got.shape == (3, 3, 5)
