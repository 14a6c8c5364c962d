"""Equations (16) and (25) against closed forms and simulation.

The class of the simulations is Gaussian, N(mu, I) with |mu| = kappa, normalized: its mean has the
closed form below, which neither the code nor the sampling uses.
"""

import tracemalloc
from math import exp, lgamma, sqrt

import numpy as np
import pytest
import torch
from scipy.special import hyp1f1

from protorect.core import theory
from protorect.core.theory import (
    ClassMoments,
    accuracy_coefficient,
    class_moments,
    cosine_lower_bound,
    expected_accuracy,
)
from protorect.errors import DataError, OptionError

MOMENTS = ClassMoments(variance=0.7, expectation=0.3)


def true_alpha(dim, kappa):
    """|E[x / |x|]|^2 for x ~ N(mu, I) in `dim` dimensions with |mu| = kappa."""
    factor = exp(lgamma((dim + 1) / 2) - lgamma(dim / 2 + 1)) / sqrt(2)
    return float((kappa * factor * hyp1f1(0.5, dim / 2 + 1, -(kappa**2) / 2)) ** 2)


def gaussian_classes(rng, classes, rows, dim, kappa):
    """Classes with means in random directions, shuffled: features (classes * rows, dim), labels."""
    means = rng.standard_normal((classes, dim))
    means *= kappa / np.linalg.norm(means, axis=1, keepdims=True)
    labels = rng.permutation(np.repeat(np.arange(classes), rows))
    return means[labels] + rng.standard_normal((len(labels), dim)), labels


def slow_moments(features, labels):
    """One class at a time: sample variance, and the mean cosine of every two different rows."""
    variances, expectations = [], []
    for name in sorted(set(labels)):
        unit = [row / np.linalg.norm(row) for row in features[labels == name]]
        n = len(unit)
        variances.append(np.var(unit, axis=0, ddof=1).sum())
        cosines = [unit[i] @ unit[j] for i in range(n) for j in range(n) if i != j]
        expectations.append(np.mean(cosines))
    return np.mean(variances), np.mean(expectations)


def test_closed_form_used_by_these_tests():
    # One dimension: E[sign(x)] = erf(kappa / sqrt(2)) = 0.6826894921 at kappa = 1.
    assert true_alpha(1, 1.0) == pytest.approx(0.682689492137**2)


@pytest.mark.parametrize("kappa", [1.0, 4.0, 20.0])
def test_moments_reach_the_closed_form(kappa):
    features, labels = gaussian_classes(np.random.default_rng(0), 10, 5000, 16, kappa)
    moments = class_moments(features, labels)
    assert moments.expectation == pytest.approx(true_alpha(16, kappa), abs=3e-3)
    assert moments.variance == pytest.approx(1 - true_alpha(16, kappa), abs=3e-3)


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_moments_of_small_classes_have_no_bias(rows):
    # |mean|^2 would be too large by lambda / n >= 0.19, classes clipped one by one by 0.03 at two.
    features, labels = gaussian_classes(np.random.default_rng(1), 4000, rows, 64, 1.6)
    moments = class_moments(features, labels)
    assert true_alpha(64, 1.6) == pytest.approx(0.038, abs=1e-3)
    assert moments.expectation == pytest.approx(true_alpha(64, 1.6), abs=6e-3)


def test_moments_equal_a_slow_loop_over_classes_of_different_sizes():
    rng = np.random.default_rng(2)
    labels = rng.permutation(np.repeat(["cat", "dog", "emu"], [2, 5, 9]))
    features = rng.standard_normal((16, 7)) + 0.6
    moments = class_moments(features, labels)
    assert (moments.variance, moments.expectation) == pytest.approx(slow_moments(features, labels))


def test_moments_add_up_to_the_proportion_of_nonzero_rows():
    features, labels = gaussian_classes(np.random.default_rng(3), 6, 4, 5, 2.0)
    moments = class_moments(features, labels)
    assert moments.variance + moments.expectation == pytest.approx(1, abs=1e-12)
    features[0] = 0  # one row of 24, in classes of 4
    moments = class_moments(features, labels)
    assert moments.variance + moments.expectation == pytest.approx(23 / 24, abs=1e-12)


def test_moments_do_not_depend_on_the_norms_of_the_features():
    features, labels = gaussian_classes(np.random.default_rng(4), 3, 10, 8, 2.0)
    norms = 10.0 ** np.linspace(-200, 200, 30)[:, None]
    expected = class_moments(features, labels).expectation
    assert class_moments(features * norms, labels).expectation == pytest.approx(expected)


def test_moments_at_the_ends_stay_in_range():
    labels = np.array([0, 0, 1, 1])
    same = class_moments(np.full((4, 3), 0.1), labels)
    assert (same.variance, same.expectation) == pytest.approx((0, 1), abs=1e-12)
    opposite = class_moments(np.array([[1.0], [-1.0], [2.0], [-3.0]]), labels)
    assert (opposite.variance, opposite.expectation) == (1, 0)  # unclipped: (2, -1)
    zero = class_moments(np.zeros((4, 3)), labels)
    assert (zero.variance, zero.expectation) == (0, 0)
    assert cosine_lower_bound(zero, 3) == 0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_moments_of_arrays_and_tensors_of_every_type_agree(dtype):
    features, labels = gaussian_classes(np.random.default_rng(5), 4, 6, 9, 2.0)
    array = features.astype(dtype)
    expected = class_moments(array.astype(np.float64), labels)
    assert class_moments(array, labels) == expected
    backwards = class_moments(np.asfortranarray(array)[::-1], labels[::-1])
    assert backwards.expectation == pytest.approx(expected.expectation, rel=1e-12)
    tensor = torch.from_numpy(array).requires_grad_()
    assert class_moments(tensor, torch.from_numpy(labels)) == expected


@pytest.mark.parametrize("converted", [np.asarray, torch.from_numpy])
def test_moments_do_not_modify_the_features_and_accept_read_only_ones(converted):
    features, labels = gaussian_classes(np.random.default_rng(6), 3, 4, 5, 2.0)
    before = features.copy()
    array = converted(features)
    if array is features:
        features.flags.writeable = False  # torch warns of such an array, and a warning fails
    class_moments(array, labels)
    np.testing.assert_array_equal(features, before)


@pytest.mark.parametrize("block_values", [1, 70, 10**9])
def test_moments_do_not_depend_on_the_blocks(monkeypatch, block_values):
    features, labels = gaussian_classes(np.random.default_rng(7), 5, 11, 10, 2.0)
    expected = slow_moments(features, labels)
    monkeypatch.setattr(theory, "BLOCK_VALUES", block_values)
    moments = class_moments(features, labels)
    assert (moments.variance, moments.expectation) == pytest.approx(expected)


def test_moments_take_little_memory():
    features = np.ones((60_000, 128), dtype=np.float16)  # 61 MB as float64
    labels = np.arange(60_000) % 100
    tracemalloc.start()
    class_moments(features, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25e6  # two blocks of 8 MB while one follows the other, and the labels


@pytest.mark.parametrize("samples", [1, 2, 5, 13, 50])
@pytest.mark.parametrize("kappa", [2.0, 4.0, 10.0])
def test_bound_is_below_and_near_the_simulated_cosine(kappa, samples):
    dim, repeats = 32, 200_000 // samples
    alpha = true_alpha(dim, kappa)
    x = np.random.default_rng(samples).standard_normal((repeats, samples, dim), dtype=np.float32)
    x[..., 0] += kappa
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    prototypes = x.mean(axis=1)
    # E_X cos(P, X) is P-bar times E[X-bar], which lies along mu with length sqrt(alpha), eq. (11).
    simulated = sqrt(alpha) * (prototypes[:, 0] / np.linalg.norm(prototypes, axis=1)).mean()
    bound = cosine_lower_bound(ClassMoments(1 - alpha, alpha), samples)
    # With ten times the samples it was at most 0.0002 above the true value, 0.0005 below it.
    assert bound <= simulated + 0.0006
    assert bound >= simulated - 0.0012


def test_bound_is_of_first_order_only():
    # x = +1 with probability 0.9, else -1; the mean of two is -1, 0 or 1, and a zero has cosine 0.
    mean = 0.9 - 0.1
    truth = mean * (0.9**2 - 0.1**2)
    assert cosine_lower_bound(ClassMoments(1 - mean**2, mean**2), 2) > truth + 0.05


def test_bound_in_numbers_at_its_ends_and_shapes():
    assert cosine_lower_bound(MOMENTS, 1) == pytest.approx(0.3)
    assert cosine_lower_bound(MOMENTS, 7) == pytest.approx(0.3 / sqrt(0.4))
    assert cosine_lower_bound(MOMENTS, np.inf) == pytest.approx(sqrt(0.3))
    assert cosine_lower_bound(MOMENTS, [1, 7]) == pytest.approx([0.3, 0.3 / sqrt(0.4)])
    grid = np.arange(1, 7).reshape(2, 3)
    assert cosine_lower_bound(MOMENTS, grid).shape == (2, 3)
    assert isinstance(cosine_lower_bound(MOMENTS, 3), float)


def test_bound_increases_with_the_samples():
    bound = cosine_lower_bound(MOMENTS, np.arange(1, 1000))
    assert (np.diff(bound) > 0).all()
    assert bound[-1] < sqrt(0.3)


def test_coefficient_is_recovered_from_accuracies_on_the_curve():
    on_curve = {shot: 137.5 * float(cosine_lower_bound(MOMENTS, shot)) for shot in (1, 5, 20)}
    assert accuracy_coefficient(MOMENTS, on_curve) == pytest.approx(137.5, rel=1e-12)
    one = {5: on_curve[5]}
    assert accuracy_coefficient(MOMENTS, one) == pytest.approx(137.5, rel=1e-12)


def test_coefficient_has_the_least_squared_error():
    accuracies = {1: 60.0, 5: 80.0}
    bound = cosine_lower_bound(MOMENTS, list(accuracies))
    (expected,) = np.linalg.lstsq(bound[:, None], np.array([60.0, 80.0]))[0]
    assert accuracy_coefficient(MOMENTS, accuracies) == pytest.approx(expected)
    as_fractions = {shot: value / 100 for shot, value in accuracies.items()}
    assert accuracy_coefficient(MOMENTS, as_fractions) == pytest.approx(expected / 100)


def test_expected_accuracy_without_pseudo_labels_is_the_fitted_one():
    eta = accuracy_coefficient(MOMENTS, {5: 78.0})
    assert expected_accuracy(MOMENTS, eta, shot=5, z=0) == pytest.approx(78.0)


def test_expected_accuracy_counts_labeled_and_pseudo_labeled_samples_alike():
    z = np.arange(0, 30)
    curve = expected_accuracy(MOMENTS, 120.0, shot=1, z=z)
    assert (np.diff(curve) > 0).all()
    np.testing.assert_allclose(curve, 120 * 0.3 / np.sqrt(0.7 / (1 + z) + 0.3))
    np.testing.assert_allclose(curve[4:], expected_accuracy(MOMENTS, 120.0, shot=5, z=z[:-4]))


def test_from_features_to_curve():
    features, labels = gaussian_classes(np.random.default_rng(8), 20, 50, 16, 3.0)
    moments = class_moments(features.astype(np.float32), labels)
    eta = accuracy_coefficient(moments, {1: 60.0, 5: 80.0})
    curve = expected_accuracy(moments, eta, 1, np.arange(9))
    assert curve.shape == (9,)
    # The fit passes between the two accuracies: one above, the other below.
    misses = (curve[0] - 60.0) * (curve[4] - 80.0)
    assert misses < 0


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (np.ones((4, 2)), np.array([0, 0, 1]), r"\(3,\).*\(4, 2\)"),
        (np.ones((4, 2)), np.zeros((4, 1)), r"\(4, 1\).*\(4, 2\)"),
        (np.ones(4), np.zeros(4), r"\(4,\).*\(n, dim\)"),
        (np.ones((0, 2)), np.zeros(0), r"\(0, 2\)"),
        (np.ones((2, 0)), np.zeros(2), r"\(2, 0\)"),
        (np.ones((4, 2)), np.array(["cat", "dog", "cat", "emu"]), "2 of 3 classes.*'dog', 'emu'"),
        (torch.ones(9, 2), torch.tensor([*range(8), 0]), "7 of 8 classes.* 1, 2, 3, 4, 5, ..."),
        (np.array([[1.0], [2.0], [np.nan]]), np.zeros(3), "row 2 .*not finite"),
        (torch.tensor([[1.0], [-torch.inf], [1.0]]), torch.zeros(3), "row 1 .*not finite"),
    ],
)
def test_moments_refuse_what_they_cannot_use(monkeypatch, features, labels, message):
    monkeypatch.setattr(theory, "BLOCK_VALUES", 1)  # the row is counted over the blocks
    with pytest.raises(DataError, match=message):
        class_moments(features, labels)


@pytest.mark.parametrize("samples", [0, [1, 0.5], -3, float("nan")])
def test_bound_refuses_less_than_one_sample(samples):
    with pytest.raises(OptionError, match="samples is"):
        cosine_lower_bound(MOMENTS, samples)


@pytest.mark.parametrize(("variance", "expectation"), [(-0.1, 0.5), (0.5, float("nan"))])
def test_moments_out_of_range_are_refused(variance, expectation):
    with pytest.raises(OptionError, match="must be 0 or more"):
        ClassMoments(variance, expectation)


@pytest.mark.parametrize(
    ("accuracies", "message"),
    [({}, "no accuracy"), ({1: float("nan")}, "accuracies are"), ({0: 20.0}, "samples is")],
)
def test_coefficient_refuses_what_it_cannot_fit(accuracies, message):
    with pytest.raises(OptionError, match=message):
        accuracy_coefficient(MOMENTS, accuracies)


def test_coefficient_refuses_features_without_direction():
    with pytest.raises(DataError, match="no direction"):
        accuracy_coefficient(ClassMoments(1.0, 0.0), {1: 20.0})


@pytest.mark.parametrize(("shot", "z"), [(0, 8), (1, -1), (5, [0, -2]), (1, float("nan"))])
def test_expected_accuracy_refuses_counts_out_of_range(shot, z):
    with pytest.raises(OptionError, match="shot is"):
        expected_accuracy(MOMENTS, 100.0, shot, z)
