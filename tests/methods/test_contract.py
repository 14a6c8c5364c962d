"""The contract of every method on features."""

import copy
import dataclasses
import gc
import pickle
import weakref

import numpy as np
import pytest
import torch

from helpers.random_tasks import random_tasks
from protorect import METHODS, DataError, OptionError, evaluate
from protorect.core.unit_rows import UnitRows
from protorect.methods import Rule
from reference import new_samples

SETTINGS = {  # shots of each class, number of queries
    "one shot": ((1, 1, 1, 1, 1), 15),
    "unequal shots": ((1, 5, 2), 12),
    "fewer queries than classes": ((2, 2, 2, 2, 2, 2), 3),
    "one query": ((1, 1, 1), 1),
    "no query": ((1, 2, 1), 0),
    "two classes": ((3, 3), 8),
}


def short(name):
    """The method, with few iterations if it iterates: the contract holds for any number."""
    chosen = METHODS[name]
    return chosen.with_options(**few_iterations(name))


def few_iterations(name):
    return {"iterations": 20} if getattr(METHODS[name].options, "iterations", 0) > 20 else {}


def assert_close(scores, expected, tolerance=1e-5):
    """Equal up to rounding and a constant per query."""
    scores, expected = (s - s.mean(dim=-1, keepdim=True) for s in (scores, expected))
    size = float(expected.abs().amax().clamp_min(1e-12)) if expected.numel() else 0.0
    torch.testing.assert_close(scores, expected, rtol=0, atol=tolerance * size)


every_method = pytest.mark.parametrize("name", METHODS)
every_setting = pytest.mark.parametrize(("shots", "n_query"), SETTINGS.values(), ids=SETTINGS)


@every_setting
@every_method
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_scores_are_finite_and_of_the_right_shape(name, shots, n_query, dtype):
    support, labels, query = random_tasks(shots, n_query, dtype=dtype)
    scores = short(name)(support, labels, query)
    assert scores.shape == (3, n_query, len(shots))
    assert scores.dtype == torch.promote_types(dtype, torch.float32)
    assert scores.isfinite().all()


@every_setting
@every_method
def test_a_task_does_not_depend_on_the_others_of_the_batch(name, shots, n_query):
    support, labels, query = random_tasks(shots, n_query)
    together = short(name)(support, labels, query)
    for i in range(3):
        alone = short(name)(support[i : i + 1], labels, query[i : i + 1])
        assert_close(alone[0], together[i])


@every_setting
@every_method
def test_the_order_of_queries_support_and_classes_does_not_matter(name, shots, n_query):
    support, labels, query = random_tasks(shots, n_query)
    generator = torch.Generator().manual_seed(1)
    query_order = torch.randperm(n_query, generator=generator)
    support_order = torch.randperm(len(labels), generator=generator)
    new_label = torch.randperm(len(shots), generator=generator)
    expected = short(name)(support, labels, query)
    permuted = short(name)(
        support[:, support_order], new_label[labels[support_order]], query[:, query_order]
    )
    assert_close(permuted[:, :, new_label], expected[:, query_order])


@every_method
def test_each_task_may_have_labels_of_its_own(name):
    support, labels, query = random_tasks((2, 2, 2), 9)
    order = torch.stack([torch.randperm(6), torch.arange(6), torch.arange(6).flip(0)])
    mixed = support.gather(1, order.unsqueeze(-1).expand_as(support))
    scores = short(name)(mixed, labels[order], query)
    assert_close(scores, short(name)(support, labels, query))


@every_method
def test_unit_rows_and_tensors_give_the_same_scores_and_are_not_changed(name):
    support, labels, query = random_tasks((1, 1, 1, 1), 20, dtype=torch.float32)
    rows = UnitRows.of(support.clone()), labels, UnitRows.of(query.clone())
    scores = short(name)(*rows)
    assert_close(scores, short(name)(support, labels, query))
    assert torch.equal(rows[0].rows, support)
    assert torch.equal(rows[2].rows, query)
    assert torch.equal(short(name)(*rows), scores)  # no state between calls


@every_method
def test_inference_mode_changes_nothing(name):
    task = random_tasks((1, 2, 1), 9)
    with torch.inference_mode():
        scores = short(name)(*task)
    assert_close(scores, short(name)(*task))


@every_method
def test_only_transductive_scores_depend_on_the_other_queries(name):
    support, labels, query = random_tasks((1, 1, 1), 12, tasks=1)
    together = short(name)(support, labels, query)
    alone = torch.cat([short(name)(support, labels, query[:, i : i + 1]) for i in range(12)], 1)
    together, alone = (one - one.mean(dim=-1, keepdim=True) for one in (together, alone))
    difference = float((together - alone).abs().max() / together.abs().max())
    assert (difference < 1e-9) == (METHODS[name].family == "inductive")


@every_method
def test_zero_and_duplicate_features_give_finite_scores(name):
    support, labels, query = random_tasks((2, 2, 2), 9, dtype=torch.float32)
    support[:, 0] = 0
    query[:, 0] = 0
    query[:, 1] = query[:, 2] = query[:, 3]
    query[:, 4] = support[:, 1]
    assert short(name)(support, labels, query).isfinite().all()
    same = torch.ones_like(support), labels, torch.ones_like(query)
    assert short(name)(*same).isfinite().all()
    assert short(name)(torch.zeros_like(support), labels, query).isfinite().all()


@every_method
@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_features_of_any_norm_give_finite_scores(name, size):
    support, labels, query = random_tasks((1, 1, 1), 12, dtype=torch.float32)
    assert short(name)(size * support, labels, size * query).isfinite().all()


@every_method
def test_separated_classes_are_classified_without_error(name):
    labels = np.repeat(np.arange(6), 20)
    rng = np.random.default_rng(0)
    features = np.eye(6)[labels] * 10 - 3 + 0.01 * rng.normal(size=(120, 6))
    for result in evaluate(features, labels, short(name), shot=[1, 5], episodes=5):
        assert result.accuracy == 100


@every_method
def test_options_are_immutable_and_hashable(name):
    options = METHODS[name].options
    copy = type(options)(**dataclasses.asdict(options))
    assert options == copy
    assert hash(options) == hash(copy)
    for field in dataclasses.fields(options):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(options, field.name, None)


# --- fit, and scores of new samples -------------------------------------------------------------

NEW = 6  # new samples per task
uses_prior = pytest.mark.parametrize("name", [m.name for m in METHODS.values() if m.uses_prior])
uses_previous = pytest.mark.parametrize(
    "name", [m.name for m in METHODS.values() if m.uses_previous]
)


def with_new_samples(shots, n_unlabeled, **options):
    """Tasks with new samples of the same classes."""
    support, labels, query = random_tasks(shots, n_unlabeled + NEW, **options)
    return support, labels, query[:, NEW:].contiguous(), query[:, :NEW].contiguous()


@every_setting
@every_method
def test_the_unlabeled_samples_have_the_scores_of_a_call(name, shots, n_query):
    support, labels, query = random_tasks(shots, n_query)
    fitted = short(name).fit(support, labels, query)
    assert fitted.scores(query) is fitted.unlabeled_scores
    assert torch.equal(fitted.scores(query), short(name)(support, labels, query))


@pytest.mark.parametrize("dim", [16, 40])  # fewer and more than there are samples
@pytest.mark.parametrize("negative", [True, False])
@pytest.mark.parametrize(
    ("shots", "n_query"),
    [((1, 1, 1, 1), 15), ((1, 4, 2), 20), ((2, 2, 2, 2, 2), 3)],
    ids=["one shot", "unequal shots", "fewer queries than classes"],
)
@every_method
def test_new_samples_agree_with_the_reference(name, shots, n_query, negative, dim):
    support, labels, unlabeled, new = with_new_samples(shots, n_query, tasks=2, dim=dim)
    if not negative:
        support, unlabeled = support.abs(), unlabeled.abs()
    chosen = METHODS[name]
    options = {"iterations": 6} if getattr(chosen.options, "iterations", 0) > 6 else {}
    inductive = chosen.family == "inductive"
    scores = chosen.with_options(**options).fit(support, labels, unlabeled).scores(new)
    for task in range(2):
        arrays = (part.numpy() for part in (support[task], labels, unlabeled[task], new[task]))
        expected = new_samples.scores(name, *arrays, len(shots), inductive=inductive, **options)
        assert_close(scores[task], torch.from_numpy(expected), 1e-6)


@every_setting
@every_method
def test_a_rule_gives_the_unlabeled_samples_their_scores_again(name, shots, n_query):
    support, labels, query = random_tasks(shots, n_query)
    fitted = short(name).fit(support, labels, query)
    if METHODS[name].has_rule:
        assert_close(fitted.scores(query.clone()), fitted.unlabeled_scores)
    else:
        assert fitted.scores(query.clone()).shape == fitted.unlabeled_scores.shape


@every_method
def test_new_samples_do_not_depend_on_each_other_nor_on_other_tasks(name):
    support, labels, unlabeled, new = with_new_samples((1, 1, 1, 1, 1), 15)
    fitted = short(name).fit(support, labels, unlabeled)
    together = fitted.scores(new)
    assert_close(torch.cat([fitted.scores(new[:, i : i + 1]) for i in range(NEW)], 1), together)
    for i in range(3):
        alone = short(name).fit(support[i : i + 1], labels, unlabeled[i : i + 1])
        assert_close(alone.scores(new[i : i + 1])[0], together[i])
        assert_close(fitted.rule.part(slice(i, i + 1)).scores(new[i : i + 1])[0], together[i])


@every_method
def test_without_unlabeled_samples_the_support_alone_counts(name):
    support, labels, _, new = with_new_samples((2, 2, 2), 9)
    fitted = short(name).fit(support, labels)
    assert fitted.unlabeled_scores.shape == (3, 0, 3)
    assert_close(short(name).fit(support, labels, new[:, :0]).scores(new), fitted.scores(new))
    assert fitted.scores(new).isfinite().all()
    own = fitted.scores(support).argmax(dim=-1)
    assert (own == labels).float().mean() > 0.9


@every_method
@pytest.mark.parametrize("inference", [True, False])
def test_a_fitted_method_can_be_pickled_copied_and_saved(name, inference):
    support, labels, unlabeled, new = with_new_samples((2, 1, 3), 9, dtype=torch.float32)
    with torch.inference_mode(inference):
        fitted = short(name).fit(support, labels, unlabeled)
    expected = fitted.scores(new)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert torch.equal(other.scores(new), expected)
        assert torch.equal(other.unlabeled_scores, fitted.unlabeled_scores)
        assert other.method == fitted.method
    tensors, numbers = fitted.rule.state()
    restored = Rule.restore(type(fitted.rule).__name__, tensors, numbers)
    assert torch.equal(restored.scores(new), expected)
    first = next(iter(tensors))
    changes = [{first: tensors[first][None]}, {first: tensors[first] + torch.nan}, {"another": new}]
    for damaged in ({}, *(tensors | change for change in changes)):
        with pytest.raises(DataError, match="no rule"):
            Rule.restore(type(fitted.rule).__name__, damaged, numbers)
    with pytest.raises(DataError, match="no rule 'os'"):
        Rule.restore("os", tensors, numbers)


@every_method
def test_the_unlabeled_samples_are_not_kept(name):
    support, labels, unlabeled, _ = with_new_samples((2, 1, 3), 40)
    fitted, before = short(name).fit(support, labels, unlabeled), weakref.ref(unlabeled)
    del unlabeled
    gc.collect()
    assert before() is None
    size = sum(tensor.numel() for tensor in fitted.rule.state()[0].values())
    assert size <= 3 * support.numel()  # a few vectors per class


@every_method
def test_float_types_may_differ_between_fit_and_new_samples(name):
    support, labels, unlabeled, new = with_new_samples((2, 1, 3), 9, dtype=torch.float32)
    fitted = short(name).fit(support, labels, unlabeled)
    for dtype, atol in ((torch.float16, 0.02), (torch.float64, 1e-4)):
        scores = fitted.scores(new.to(dtype))
        assert scores.dtype == torch.promote_types(dtype, torch.float32)
        assert_close(scores.double(), fitted.scores(new).double(), atol)


@every_method
def test_a_prior_of_zeros_or_of_a_constant_per_sample_changes_nothing(name):
    support, labels, query = random_tasks((2, 1, 3), 9)
    expected = short(name)(support, labels, query)
    for prior in (torch.zeros(3, 9, 3), torch.full((3, 9, 3), 5.0)):
        fitted = short(name).fit(support, labels, query, prior=prior)
        assert_close(fitted.scores(query), expected)


@uses_prior
@pytest.mark.parametrize(("shots", "n_query"), [((2, 1, 3), 9), ((1, 1, 1, 1), 2)])
def test_a_strong_prior_moves_a_sample_to_its_class(name, shots, n_query):
    support, labels, query = random_tasks(shots, n_query)
    for way in range(len(shots)):
        for excluded in (-300.0, -torch.inf):
            prior = torch.full((3, n_query, len(shots)), 0.0)
            prior[:, 1] = excluded
            prior[:, 1, way] = 0
            fitted = short(name).fit(support, labels, query, prior=prior)
            assert (fitted.unlabeled_scores[:, 1].argmax(dim=-1) == way).all()
            assert fitted.unlabeled_scores.isfinite().all()


@uses_prior
def test_a_prior_changes_the_rule_of_methods_that_learn_from_unlabeled_samples(name):
    support, labels, unlabeled, new = with_new_samples((1, 1, 1), 12)
    prior = 300 * torch.nn.functional.one_hot(torch.arange(12) % 3, 3).double().expand(3, -1, -1)
    with_prior = short(name).fit(support, labels, unlabeled, prior=prior).scores(new)
    without = short(name).fit(support, labels, unlabeled).scores(new)
    learns = name not in ("cspn", "bd-c")  # these only compare, and shift by the mean
    assert ((with_prior - without).abs().max() > 1e-6) == learns


@uses_previous
def test_an_earlier_fit_is_where_the_next_one_starts(name):
    support, labels, query = random_tasks((2, 1, 3), 30)
    chosen = METHODS[name].with_options(iterations=200, learning_rate=0.001)
    earlier = chosen.fit(support, labels, query)
    again = chosen.fit(support, labels, query, previous=earlier)
    cold = (
        METHODS[name].with_options(iterations=20, learning_rate=0.001).fit(support, labels, query)
    )
    distances = [
        (one.rule.prototypes - earlier.rule.prototypes).norm().item() for one in (again, cold)
    ]
    assert 0 < distances[0] < distances[1] / 2


@every_method
def test_an_earlier_fit_of_other_samples_of_the_same_classes_is_accepted(name):
    support, labels, query = random_tasks((2, 1, 3), 9)
    others = torch.arange(6) != labels.argmax()  # without one of the three of the last class
    earlier = short(name).fit(support[:, others], labels[others], query)
    fitted = short(name).fit(support, labels, query[:, 1:], previous=earlier)
    if not METHODS[name].uses_previous:
        assert_close(fitted.unlabeled_scores, short(name)(support, labels, query[:, 1:]))


@every_method
def test_an_earlier_fit_of_another_method_or_shape_is_refused(name):
    support, labels, query = random_tasks((2, 1, 3), 9)
    other = METHODS["cspn" if name != "cspn" else "bd-c"].fit(support, labels, query)
    with pytest.raises(OptionError, match=f"not by {name}"):
        METHODS[name].fit(support, labels, query, previous=other)
    earlier = METHODS[name].with_options(**few_iterations(name)).fit(support, labels, query)
    with pytest.raises(OptionError, match=r"dimensions\) = \(3, 3, 16\), this task has \(2, 3"):
        METHODS[name].with_options(**few_iterations(name)).fit(
            support[:2], labels, query[:2], previous=earlier
        )


@every_method
def test_wrong_shapes_are_refused(name):
    support, labels, query = random_tasks((2, 1, 3), 9)
    with pytest.raises(DataError, match=r"support \(3, 6, 16\) and unlabeled samples \(3, 9, 5\)"):
        short(name).fit(support, labels, query[..., :5])
    with pytest.raises(DataError, match=r"prior has shape \(3, 9, 2\)"):
        short(name).fit(support, labels, query, prior=torch.zeros(3, 9, 2))
    with pytest.raises(DataError, match="not numbers"):
        short(name).fit(support, labels, query, prior=torch.full((3, 9, 3), torch.nan))
    with pytest.raises(
        DataError, match=r"samples of shape \(3, 9, 5\) were given, not \(3, n, 16\)"
    ):
        short(name).fit(support, labels).scores(query[..., :5])


@every_method
def test_the_support_is_converted_to_the_type_of_the_unlabeled_samples(name):
    support, labels, query = random_tasks((2, 1, 3), 9)
    for own, other in ((torch.float64, torch.float32), (torch.float32, torch.float64)):
        same = short(name)(support.to(own).to(other), labels, query.to(other))
        scores = short(name)(support.to(own), labels.int(), query.to(other))
        assert torch.equal(scores, same)
        assert scores.dtype == other
    half = short(name)(support.float(), labels, query.half())  # computed in float32
    assert torch.equal(half, short(name)(support.float(), labels, query.half().float()))


SUPPORT, LABELS, UNLABELED = random_tasks((2, 1, 3), 9)
WRONG_INPUT = {  # what differs from a fit that succeeds, and what the message says of it
    "array": ({"support": SUPPORT.numpy()}, "support is of type ndarray; give a tensor"),
    "list": ({"labels": LABELS.tolist()}, "labels is of type list; give a tensor"),
    "unlabeled list": ({"unlabeled": [[[1.0]]]}, "unlabeled is of type list; give a tensor"),
    "prior array": ({"prior": np.zeros((3, 9, 3))}, "prior is of type ndarray; give a tensor"),
    "rule": ({"previous": "cspn"}, "previous is of type str; give what `fit` has returned"),
    "one task": ({"support": SUPPORT[0]}, r"support has shape \(6, 16\): the axis of the tasks"),
    "unlabeled of one task": (
        {"unlabeled": UNLABELED[0]},
        r"unlabeled has shape \(9, 16\): the axis of the tasks is missing",
    ),
    "four axes": ({"support": SUPPORT[None]}, "it needs three axes"),
    "too few labels": (
        {"labels": LABELS[1:]},
        r"labels have shape \(5,\); one label per support sample is \(6,\) or, .*\(3, 6\)",
    ),
    "labels of too few tasks": ({"labels": LABELS.expand(2, -1)}, r"labels have shape \(2, 6\)"),
    "no support": ({"support": SUPPORT[:, :0], "labels": LABELS[:0]}, "labels are empty"),
    "fractions": ({"labels": LABELS.float()}, "labels are of type torch.float32; give integers"),
    "flags": ({"labels": LABELS > 0}, "labels are of type torch.bool; give integers"),
    "negative": ({"labels": LABELS - 1}, "labels are from -1 to 1; give the integers 0"),
    "absent class": ({"labels": LABELS * 2}, "labels are from 0 to 4; give the integers 0"),
    "huge label": ({"labels": LABELS * 10**12}, "labels are from 0 to 2000000000000; give"),
    "absent in one task": (
        {"labels": torch.stack([LABELS, LABELS, LABELS.clamp_max(1)])},
        "each at least once in every task",
    ),
    "nan": ({"support": SUPPORT * torch.nan}, "support has values that are not finite"),
    "too large for the type": (
        {"support": SUPPORT * 1e300, "unlabeled": UNLABELED.float()},
        "not finite in torch.float32",
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG_INPUT.values(), ids=WRONG_INPUT)
def test_input_that_is_no_task_is_refused_in_one_sentence(change, message):
    given = {"support": SUPPORT, "labels": LABELS, "unlabeled": UNLABELED} | change
    with pytest.raises(DataError, match=message) as caught:
        METHODS["cspn"].fit(**given)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    if not {"prior", "previous"} & set(change):
        with pytest.raises(DataError, match=message):
            METHODS["cspn"](given["support"], given["labels"], given["unlabeled"])


RAW = ("protonet", "soft-kmeans")  # they do not normalize


@pytest.mark.parametrize("size", [1e20, 1e-30])
@pytest.mark.parametrize("name", [name for name in METHODS if name not in RAW])
def test_features_of_any_length_give_the_same_classes(name, size):
    support, labels, query = random_tasks((2, 2, 2), 15, dtype=torch.float32)
    chosen = short(name)
    expected = chosen(support, labels, query)
    assert_close(chosen(support * size, labels, query * size), expected, tolerance=1e-3)
    fitted = chosen.fit(support * size, labels, query * size)
    assert_close(
        fitted.scores(query[:, :4] * size),
        chosen.fit(support, labels, query).scores(query[:, :4].clone()),
        tolerance=1e-3,
    )


@pytest.mark.parametrize("size", [1e20, 1e-30])
@pytest.mark.parametrize("name", RAW)
def test_raw_features_whose_squares_are_out_of_range_are_refused(name, size):
    support, labels, query = random_tasks((2, 2, 2), 15, dtype=torch.float32)
    with pytest.raises(DataError, match="their squares are out of the range of torch.float32"):
        METHODS[name](support * size, labels, query * size)
    wide = METHODS[name](support.double() * size, labels, query.double() * size)
    same = (METHODS[name](support, labels, query).argmax(-1) == wide.argmax(-1)).double().mean()
    if name == "protonet":  # a softmax of distances does depend on the length
        assert same == 1
