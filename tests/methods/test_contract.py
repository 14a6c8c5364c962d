"""The contract of every method on features."""

import dataclasses

import numpy as np
import pytest
import torch

from helpers.random_tasks import random_tasks
from protorect import METHODS, evaluate
from protorect.core.unit_rows import UnitRows

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
    many = getattr(chosen.options, "iterations", 0) > 20
    return chosen.with_options(iterations=20) if many else chosen


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
