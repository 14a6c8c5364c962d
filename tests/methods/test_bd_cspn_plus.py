import numpy as np
import pytest
import torch

from protorect import OptionError, evaluate, method
from protorect.core.functional import membership, normalize
from protorect.methods._solvers.gram import span_of
from protorect.methods._solvers.head import Head, regression_weight
from protorect.methods.bd_cspn_plus import PlusOptions, balanced_assignment, proportions_weight
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
        ":held_out=false,tolerance=1,scale=3",
        ":tolerance=0.0001,sharpness=5,imbalance=0.01",
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


def head_of(shots, queries, seed):
    """The head of a task with these numbers of samples per class, and its scores."""
    support, labels, query = task(shots, queries, dim=100, seed=seed)
    members = membership(torch.from_numpy(labels), len(shots)).mT.double()[None]
    span = span_of(normalize(torch.from_numpy(np.concatenate([support, query])))[None])
    head = Head.of(span, members, iterations=5, held_out=True)
    none = torch.zeros(1, len(shots), len(query), dtype=torch.float64)
    return head, head.cosines(none, none)


def weight_of_balanced_assignment(queries, seed):
    """The weight in a task with these numbers of queries per class."""
    return balanced_assignment(*head_of([5, 5, 5], queries, seed), PlusOptions())[1].item()


def test_balanced_assignment_is_used_where_classes_are_balanced_only():
    balanced = np.mean([weight_of_balanced_assignment([20, 20, 20], seed) for seed in range(20)])
    unbalanced = np.mean([weight_of_balanced_assignment([55, 3, 2], seed) for seed in range(20)])
    assert balanced > 0.8
    assert unbalanced < 0.05


def weight_of_proportions(queries, seed, shots):
    """The weight with these numbers of queries per class, for so many labels per class."""
    _, scores = head_of([10, 10, 10], queries, seed)
    return proportions_weight(scores, shots, PlusOptions()).item()


def test_proportions_are_used_where_the_evidence_for_them_is_strong():
    absent = [weight_of_proportions([60, 0, 0], seed, shots=10) for seed in range(10)]
    balanced = [weight_of_proportions([20, 20, 20], seed, shots=10) for seed in range(10)]
    assert min(absent) > 0.9
    assert max(balanced) < 0.01


def test_with_few_labels_proportions_need_more_evidence():
    few, many = (weight_of_proportions([35, 20, 5], seed=0, shots=shots) for shots in (1, 10))
    assert few < 0.1 < 0.5 < many


def test_many_queries_are_subsampled_and_all_are_scored_by_the_rule():
    support, labels, query = task([3, 3, 3], [120, 100, 80])
    parts = [torch.from_numpy(part)[None] for part in (support, labels, query)]
    chosen = method("bd-cspn-plus:max_queries=100")
    fitted = chosen.fit(*parts)
    few = chosen.fit(parts[0], parts[1], parts[2][:, ::3].clone())
    np.testing.assert_allclose(fitted.unlabeled_scores[:, ::3], few.unlabeled_scores, atol=1e-9)
    new = fitted.scores(parts[2].clone())
    np.testing.assert_allclose(fitted.unlabeled_scores, new, atol=1e-12)
    expected = reference.scores(support, labels, query, 3, max_queries=100)
    np.testing.assert_allclose(fitted.unlabeled_scores[0], expected, atol=1e-9)
    prior = torch.zeros(1, 300, 3, dtype=torch.float64)
    prior[0, 7, 1:] = -torch.inf
    with_prior = chosen.fit(*parts, prior=prior).unlabeled_scores
    assert with_prior[0, 7].argmax() == 0
    assert with_prior[0, 7, 1:].max() < -100


def test_600_queries_are_all_learned_from_and_of_one_more_a_half():
    support, labels, query = task([2, 2, 2], [201, 200, 200])
    support, labels, query = (torch.from_numpy(part)[None] for part in (support, labels, query))
    chosen = method("bd-cspn-plus")
    for count, step in ((600, 1), (601, 2)):
        found = chosen.fit(support, labels, query[:, :count]).unlabeled_scores
        parts = support, labels, query[:, :count:step].clone()
        few = method(f"bd-cspn-plus:max_queries={count}").fit(*parts).unlabeled_scores
        np.testing.assert_allclose(found[:, ::step], few, atol=1e-9)


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


def weight_of_regression(ways, dim, spread, shared=0.0, seed=0):
    """The weight in a task of five labeled samples per class.

    `shared` is the deviation of the samples along a direction that all classes share.
    """
    support, labels, _ = task([5] * ways, [1] * ways, dim, seed, spread)
    rng = np.random.default_rng(seed)
    support += shared * rng.normal(size=(len(labels), 1)) * rng.normal(size=dim)
    members = membership(torch.from_numpy(labels), ways).mT.double()[None]
    rows = normalize(torch.from_numpy(support))
    return regression_weight(span_of((rows - rows.mean(0))[None]), members, 5).item()


def test_cross_validation_decides_between_regression_and_prototypes():
    many_classes = [weight_of_regression(60, 6, spread=0.3, seed=seed) for seed in range(5)]
    few_classes = [
        weight_of_regression(5, 60, spread=0.8, shared=2, seed=seed) for seed in range(5)
    ]
    assert max(many_classes) < 0.1
    assert np.mean(few_classes) > 0.7


def test_one_sample_per_class_leaves_nothing_to_hold_out():
    members = torch.eye(4)[None]
    span = span_of(torch.eye(4, 9)[None])
    assert regression_weight(span, members, 5).tolist() == [[[0.5]]]


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
