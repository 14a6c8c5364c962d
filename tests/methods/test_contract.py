"""What every method promises, whichever it is."""

import dataclasses
import re

import numpy as np
import pytest
import torch

from protorect import METHODS, evaluate
from protorect.core.unit_rows import UnitRows
from protorect.methods import PICTURE_METHODS
from protorect.methods.description import about, option_texts

WORLDS = {  # shots of each class, number of queries
    "one shot": ((1, 1, 1, 1, 1), 15),
    "unequal shots": ((1, 5, 2), 12),
    "fewer queries than classes": ((2, 2, 2, 2, 2, 2), 3),
    "one query": ((1, 1, 1), 1),
    "no query": ((1, 2, 1), 0),
    "two classes": ((3, 3), 8),
}


def tasks_of(shots, n_query, tasks=3, dim=16, dtype=torch.float64, seed=0):
    """Random tasks around class centres, negative features included; the last class is rare."""
    generator = torch.Generator().manual_seed(seed)
    ways = len(shots)
    labels = torch.arange(ways).repeat_interleave(torch.tensor(shots))
    labels = labels[torch.randperm(len(labels), generator=generator)]
    centres = torch.randn(tasks, ways, dim, generator=generator, dtype=torch.float64)
    of_query = torch.randint(max(1, ways - 1), (n_query,), generator=generator)

    def around(classes):
        noise = torch.randn(tasks, len(classes), dim, generator=generator, dtype=torch.float64)
        return (centres[:, classes] + noise / 2).to(dtype)

    return around(labels), labels, around(of_query)


def assert_alike(scores, expected, tolerance=1e-5):
    """The same but for rounding and for what is the same for all classes of a query."""
    scores, expected = (s - s.mean(dim=-1, keepdim=True) for s in (scores, expected))
    size = float(expected.abs().amax().clamp_min(1e-12)) if expected.numel() else 0.0
    torch.testing.assert_close(scores, expected, rtol=0, atol=tolerance * size)


DESCRIBED = METHODS | PICTURE_METHODS
every_described = pytest.mark.parametrize("name", DESCRIBED)
every_method = pytest.mark.parametrize("name", METHODS)
every_world = pytest.mark.parametrize(("shots", "n_query"), WORLDS.values(), ids=WORLDS)


@every_world
@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_are_finite_and_of_the_right_shape(name, shots, n_query, dtype):
    support, labels, query = tasks_of(shots, n_query, dtype=dtype)
    scores = METHODS[name](support, labels, query)
    assert scores.shape == (3, n_query, len(shots))
    assert scores.dtype == dtype
    assert scores.isfinite().all()


@every_world
@every_method
def test_a_task_does_not_depend_on_the_others(name, shots, n_query):
    support, labels, query = tasks_of(shots, n_query)
    together = METHODS[name](support, labels, query)
    for i in range(3):
        alone = METHODS[name](support[i : i + 1], labels, query[i : i + 1])
        assert_alike(alone[0], together[i])


@every_world
@every_method
def test_the_order_of_queries_support_and_classes_does_not_matter(name, shots, n_query):
    support, labels, query = tasks_of(shots, n_query)
    generator = torch.Generator().manual_seed(1)
    of_query = torch.randperm(n_query, generator=generator)
    of_support = torch.randperm(len(labels), generator=generator)
    new_label = torch.randperm(len(shots), generator=generator)
    expected = METHODS[name](support, labels, query)
    moved = METHODS[name](support[:, of_support], new_label[labels[of_support]], query[:, of_query])
    assert_alike(moved[:, :, new_label], expected[:, of_query])


@every_method
def test_each_task_may_have_labels_of_its_own(name):
    support, labels, query = tasks_of((2, 2, 2), 9)
    order = torch.stack([torch.randperm(6), torch.arange(6), torch.arange(6).flip(0)])
    mixed = support.gather(1, order.unsqueeze(-1).expand_as(support))
    scores = METHODS[name](mixed, labels[order], query)
    assert_alike(scores, METHODS[name](support, labels, query))


@every_method
def test_unit_rows_are_as_good_as_tensors_and_are_left_alone(name):
    support, labels, query = tasks_of((1, 1, 1, 1), 20, dtype=torch.float32)
    given = UnitRows.of(support.clone()), UnitRows.of(query.clone())
    scores = METHODS[name](given[0], labels, given[1])
    assert_alike(scores, METHODS[name](support, labels, query))
    assert torch.equal(given[0].rows, support)
    assert torch.equal(given[1].rows, query)
    assert torch.equal(METHODS[name](given[0], labels, given[1]), scores)  # nothing is kept


@every_method
def test_the_family_says_whether_queries_know_of_each_other(name):
    support, labels, query = tasks_of((1, 1, 1), 12, tasks=1)
    together = METHODS[name](support, labels, query)
    alone = torch.cat([METHODS[name](support, labels, query[:, i : i + 1]) for i in range(12)], 1)
    differ = [one - one.mean(dim=-1, keepdim=True) for one in (together, alone)]
    apart = float((differ[0] - differ[1]).abs().max() / differ[0].abs().max())
    assert (apart < 1e-9) == (METHODS[name].family == "inductive")


@every_method
def test_zero_features_and_copies_are_not_a_reason_to_fail(name):
    support, labels, query = tasks_of((2, 2, 2), 9, dtype=torch.float32)
    support[:, 0] = 0
    query[:, 0] = 0
    query[:, 1] = query[:, 2] = query[:, 3]
    query[:, 4] = support[:, 1]
    assert METHODS[name](support, labels, query).isfinite().all()
    same = torch.ones_like(support), labels, torch.ones_like(query)
    assert METHODS[name](*same).isfinite().all()


@every_method
@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_long_and_short_features_are_classified(name, size):
    support, labels, query = tasks_of((1, 1, 1), 12, dtype=torch.float32)
    assert METHODS[name](size * support, labels, size * query).isfinite().all()


@every_method
def test_classes_far_apart_are_told_apart(name):
    labels = np.repeat(np.arange(6), 20)
    rng = np.random.default_rng(0)
    features = np.eye(6)[labels] * 10 - 3 + 0.01 * rng.normal(size=(120, 6))
    for result in evaluate(features, labels, name, shot=[1, 5], episodes=5):
        assert result.accuracy == 100


@every_described
def test_options_are_frozen_and_each_is_documented(name):
    options = DESCRIBED[name].options
    assert options == type(options)(**dataclasses.asdict(options))
    hash(options)
    described = option_texts(options)
    assert list(described) == [field.name for field in dataclasses.fields(options)]
    assert all(len(text) > 10 for text in described.values())
    for field in dataclasses.fields(options):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(options, field.name, None)


@every_described
def test_the_source_and_what_is_assumed_are_told(name):
    title, source, *others = about(DESCRIBED[name])
    assert title.endswith(".")
    assert re.search(r"\b(19|20)\d\d\b", source)
    assert any(paragraph.startswith("Assumes") for paragraph in others)
    assert DESCRIBED[name].summary[0].islower()
