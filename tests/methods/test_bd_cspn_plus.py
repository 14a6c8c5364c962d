import numpy as np
import pytest
import torch

from protorect import OptionError, evaluate, method
from protorect.core.functional import membership, normalize
from protorect.methods._solvers.gram import span_of
from protorect.methods.bd_cspn_plus import PlusOptions, balanced_assignment, regression_weight
from reference import bd_cspn_plus as reference


def task(shots, queries, dim=12, seed=0, spread=0.8):
    """Support, labels and queries of classes with these numbers of samples."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(len(shots), dim)) + 1
    labels = np.repeat(np.arange(len(shots)), shots)
    truth = np.repeat(np.arange(len(queries)), queries)
    support = centers[labels] + spread * rng.normal(size=(len(labels), dim))
    query = centers[truth] + spread * rng.normal(size=(len(truth), dim))
    return support, labels, query


@pytest.mark.parametrize(
    ("shots", "queries"),
    [
        ([1, 1, 1, 1, 1], [15, 15, 15, 15, 15]),
        ([5, 5, 5], [30, 2, 1]),
        ([1, 4, 2], [3, 9, 20]),
        ([2, 2, 2, 2], [1, 1, 1, 0]),  # fewer queries than classes
        ([1, 1], [1, 0]),
    ],
)
@pytest.mark.parametrize("dim", [12, 150])  # fewer and more than there are samples
@pytest.mark.parametrize(
    "spelling",
    [
        "",
        ":iterations=1,joining=3,regression_iterations=1",
        ":power=0,tolerance=1,scale=3",
        ":tolerance=0.0001,sharpness=5",
    ],
)
def test_agrees_with_the_reference(shots, queries, spelling, dim):
    support, labels, query = task(shots, queries, dim)
    chosen = method(f"bd-cspn-plus{spelling}")
    options = {name: getattr(chosen.options, name) for name in PlusOptions.__annotations__}
    expected = reference.scores(support, labels, query, len(shots), **options)
    scores = chosen(*(torch.from_numpy(part)[None] for part in (support, labels, query)))
    np.testing.assert_allclose(scores[0], expected, atol=1e-9)


def test_takes_the_square_roots_of_non_negative_features():
    support, labels, query = task([2, 1, 3], [9, 4, 2])
    support, query = np.maximum(support, 0), np.maximum(query, 0)
    expected = reference.scores(support, labels, query, 3)
    parts = [torch.from_numpy(part)[None] for part in (support, labels, query)]
    np.testing.assert_allclose(method("bd-cspn-plus")(*parts)[0], expected, atol=1e-9)
    # Whether another task of the batch has negative features does not matter.
    both = [torch.cat([part, part]) for part in parts]
    both[2][1, 0, 0] = -1e-3
    np.testing.assert_allclose(method("bd-cspn-plus")(*both)[0], expected, atol=1e-9)
    one = [part[1:] for part in both]
    alone = reference.scores(one[0][0].numpy(), labels, one[2][0].numpy(), 3)
    np.testing.assert_allclose(method("bd-cspn-plus")(*both)[1], alone, atol=1e-9)
    assert np.abs(alone - expected).max() > 1e-3


def weight_of_balanced_assignment(queries, seed):
    """The weight in a task with these numbers of queries per class."""
    support, labels, query = task([5, 5, 5], queries, dim=64, seed=seed)
    members = membership(torch.from_numpy(labels), 3).mT.double()[None]
    span = span_of(normalize(torch.from_numpy(np.concatenate([support, query])))[None])
    class_sums = span.combine(span.pad_queries(members))
    scores = span.cosines(class_sums)[..., len(support) :]
    _, weight = balanced_assignment(span, class_sums, scores, PlusOptions())
    return weight.item()


def test_balanced_assignment_is_used_where_classes_are_balanced_only():
    balanced = np.mean([weight_of_balanced_assignment([20, 20, 20], seed) for seed in range(20)])
    unbalanced = np.mean([weight_of_balanced_assignment([55, 3, 2], seed) for seed in range(20)])
    assert balanced > 0.8
    assert unbalanced < 0.05


def test_fewer_queries_than_classes_are_not_balanced():
    assert weight_of_balanced_assignment([2, 0, 0], 0) == 0


def test_a_larger_tolerance_gives_more_balanced_predictions():
    support, labels, query = task([1, 1, 1], [20, 20, 20], spread=1.5, seed=3)
    parts = [torch.from_numpy(part)[None] for part in (support, labels, query)]
    counts = {
        tolerance: torch.bincount(
            method(f"bd-cspn-plus:tolerance={tolerance}")(*parts)[0].argmax(dim=-1), minlength=3
        )
        for tolerance in (1e-6, 1e6)
    }
    assert counts[1e6].float().std() < counts[1e-6].float().std()


def test_many_iterations_solve_the_regression():
    support, labels, query = task([2, 3, 2], [9, 1, 4])
    parts = [torch.from_numpy(part)[None] for part in (support, labels, query)]
    few, many, more = (
        method(f"bd-cspn-plus:regression_iterations={n}")(*parts)[0].numpy() for n in (1, 30, 60)
    )
    np.testing.assert_allclose(many, more, atol=1e-9)
    assert np.abs(few - many).max() > 1e-3


def weight_of_regression(ways, dim, spread, seed=0):
    """The weight in a task of five labeled samples per class."""
    support, labels, _ = task([5] * ways, [1] * ways, dim, seed, spread)
    members = membership(torch.from_numpy(labels), ways).mT.double()[None]
    rows = normalize(torch.from_numpy(support))
    return regression_weight(span_of((rows - rows.mean(0))[None]), members, PlusOptions()).item()


def test_the_regression_is_not_used_where_it_fails_in_cross_validation():
    many_classes = [
        weight_of_regression(ways=60, dim=6, spread=0.3, seed=seed) for seed in range(5)
    ]
    few_classes = [weight_of_regression(ways=5, dim=40, spread=0.8, seed=seed) for seed in range(5)]
    assert max(many_classes) < 0.1
    assert min(few_classes) > 0.5


def test_one_sample_per_class_leaves_nothing_to_hold_out():
    members = torch.eye(4)[None]
    span = span_of(torch.eye(4, 9)[None])
    assert regression_weight(span, members, PlusOptions()).tolist() == [[[1.0]]]


def test_no_worse_than_the_paper_and_better_than_cspn_in_every_setting():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(12), 60)
    features = rng.normal(size=(12, 48))[labels] + 1.6 * rng.normal(size=(720, 48)) + 1
    methods = ["cspn", "bd-cspn", "bd-cspn-plus"]
    for setting in ({}, {"dirichlet": 1.0}, {"distractors": 5}):
        plain, paper, plus = evaluate(features, labels, methods, shot=1, episodes=300, **setting)
        gain = plus.minus(paper)
        assert gain.mean > -gain.ci95, setting
        gain = plus.minus(plain)
        assert gain.mean > gain.ci95, setting


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("iterations=0", "iterations is 0; it must be a whole number from 1 up."),
        ("joining=0", "joining is 0; it must be a whole number from 1 up."),
        ("tolerance=-1", "tolerance is -1.0; it must lie in 1e-06 .. 1e+06."),
    ],
)
def test_an_invalid_option_is_refused(option, message):
    with pytest.raises(OptionError) as raised:
        method(f"bd-cspn-plus:{option}")
    assert message in str(raised.value)


def test_zero_and_identical_features_give_finite_scores():
    support, query = torch.zeros(1, 4, 6), torch.zeros(1, 5, 6)
    labels = torch.tensor([0, 0, 1, 1])
    assert torch.isfinite(method("bd-cspn-plus")(support, labels, query)).all()
    support, query = torch.ones(1, 4, 6), torch.ones(1, 5, 6)
    assert torch.isfinite(method("bd-cspn-plus")(support, labels, query)).all()
