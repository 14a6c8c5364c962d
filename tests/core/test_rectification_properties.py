"""Properties of prototype rectification that hold for every task, tested by Hypothesis.

Rounding decides where two scores are equal, and a shifted query of a very small norm is mostly
rounding error; tasks that close to either are discarded (`clear_cut`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from torch import Tensor

from protorect.core import functional
from protorect.core.functional import Options, Rectified
from protorect.core.unit_rows import UnitRows
from reference import rectification as paper

CLOSE = {"rtol": 0, "atol": 1e-9}

steady = settings(
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class Task(NamedTuple):
    """A batch of one task, in float64."""

    support: Tensor  # (1, n_support, dim)
    labels: Tensor  # (n_support,)
    query: Tensor  # (1, n_query, dim)
    ways: int


@st.composite
def tasks(draw, like: Task | None = None) -> Task:
    """Small whole numbers, so that some samples coincide, with a little noise added to each.

    The task has the shapes and labels of `like` if that is given.
    """
    if like is None:
        shots = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
        labels = draw(st.permutations([n for n, shot in enumerate(shots) for _ in range(shot)]))
        labels, ways = torch.tensor(labels), len(shots)
        n_query, dim = draw(st.integers(1, 9)), draw(st.integers(2, 6))
    else:
        labels, ways = like.labels, like.ways
        n_query, dim = like.query.shape[1:]
    noise = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def features(n: int) -> Tensor:
        coarse = draw(st.lists(st.integers(-2, 2), min_size=n * dim, max_size=n * dim))
        fine = np.array(coarse).reshape(n, dim) + noise.normal(scale=0.4, size=(n, dim))
        for zero in draw(st.sets(st.integers(0, 6 * n), max_size=1)):
            fine[zero : zero + 1] = 0  # mostly beyond the last row, which changes nothing
        return torch.from_numpy(fine).unsqueeze(0)

    return Task(features(len(labels)), labels, features(n_query), ways)


options = st.builds(
    Options,
    z=st.sampled_from([1, 2, 3, 8, None]),
    epsilon=st.sampled_from([0.0, 1.0, 10.0, 50.0]),
    weighting=st.sampled_from(["samples", "classes"]),
    shift=st.booleans(),
    rank=st.sampled_from(["cosine", "softmax"]),
    assignment=st.sampled_from(["predicted", "overlapping"]),
)


def reference_of(task: Task, chosen: Options) -> paper.Rectification:
    return paper.rectify_episode(
        task.support[0].numpy(),
        task.labels.tolist(),
        task.query[0].numpy(),
        task.ways,
        move=chosen.shift,
        z=chosen.z,
        epsilon=chosen.epsilon,
        weighting=chosen.weighting,
        rank=chosen.rank,
        assignment=chosen.assignment,
        scale=chosen.scale,
    )


def clear_cut(task: Task, chosen: Options, gap: float = 1e-6) -> bool:
    """Whether no label, no choice of the Z and no direction depends on rounding."""
    reference = reference_of(task, chosen)
    scores = [sorted(paper.cosines(x, reference.basic)) for x in reference.queries]
    return (
        (task.ways == 1 or all(row[-1] - row[-2] > gap for row in scores))
        and smallest_shifted_norm(task, reference) > 0.01
        and all(paper.length(x) > 0.01 for x in [*reference.basic, *reference.prototypes])
        and all(boundary_is_clear(reference, chosen, n, gap) for n in range(task.ways))
    )


def smallest_shifted_norm(task: Task, reference: paper.Rectification) -> float:
    """The smallest norm of a query after the shift, before it is renormalized."""
    return min(paper.length(paper.normalized(x) + reference.xi) for x in task.query[0].numpy())


def boundary_is_clear(reference: paper.Rectification, chosen: Options, n: int, gap: float) -> bool:
    """Whether the last query that joins class n is more confident than the first that does not."""

    def joining(z: int | None) -> list[int]:
        return paper.pseudo_labeled(
            reference.queries, reference.basic, n, z, chosen.rank, chosen.assignment
        )

    candidates_in_order = joining(None)
    if chosen.z is None or len(candidates_in_order) <= chosen.z:
        return True
    last, next_one = (
        paper.confidence(reference.queries[i], reference.basic, n, chosen.rank)
        for i in candidates_in_order[chosen.z - 1 : chosen.z + 1]
    )
    return last - next_one > gap


def rectify(task: Task, chosen: Options) -> Rectified:
    return functional.rectify(*task, chosen)


def same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, **CLOSE)


# --- the paper ----------------------------------------------------------------------------------


@steady
@given(tasks(), options)
def test_the_reference_implementation_agrees(task, chosen):
    assume(clear_cut(task, chosen))
    got, reference = rectify(task, chosen), reference_of(task, chosen)
    same(got.prototypes[0], torch.from_numpy(np.array(reference.prototypes)))
    same(got.scores[0], torch.from_numpy(reference.scores))


# --- order and labels ---------------------------------------------------------------------------


@steady
@given(tasks(), options, st.randoms(use_true_random=False))
def test_permuting_the_queries_permutes_the_scores(task, chosen, random):
    assume(clear_cut(task, chosen))
    order = random.sample(range(task.query.shape[1]), task.query.shape[1])
    plain, other = rectify(task, chosen), rectify(task._replace(query=task.query[:, order]), chosen)
    same(other.scores, plain.scores[:, order])
    same(other.prototypes, plain.prototypes)


@steady
@given(tasks(), options, st.randoms(use_true_random=False))
def test_permuting_the_support_changes_nothing(task, chosen, random):
    assume(clear_cut(task, chosen))
    order = random.sample(range(len(task.labels)), len(task.labels))
    other = task._replace(support=task.support[:, order], labels=task.labels[order])
    same(rectify(other, chosen).scores, rectify(task, chosen).scores)


@steady
@given(tasks(), options, st.randoms(use_true_random=False))
def test_renaming_the_classes_permutes_the_columns(task, chosen, random):
    assume(clear_cut(task, chosen))
    names = torch.tensor(random.sample(range(task.ways), task.ways))  # class n is now names[n]
    plain, other = rectify(task, chosen), rectify(task._replace(labels=names[task.labels]), chosen)
    same(other.scores[..., names], plain.scores)
    same(other.prototypes[:, names], plain.prototypes)


@steady
@given(st.data(), options)
def test_a_batch_is_its_tasks_one_by_one(data, chosen):
    batch = [data.draw(tasks())]
    batch += [data.draw(tasks(like=batch[0])) for _ in range(2)]
    assume(all(clear_cut(task, chosen) for task in batch))
    got = functional.rectify(
        torch.cat([task.support for task in batch]),
        batch[0].labels,
        torch.cat([task.query for task in batch]),
        batch[0].ways,
        chosen,
    )
    alone = [rectify(task, chosen) for task in batch]
    same(got.scores, torch.cat([one.scores for one in alone]))
    same(got.prototypes, torch.cat([one.prototypes for one in alone]))


@steady
@given(tasks(), options)
def test_everything_twice_with_twice_the_z_changes_nothing(task, chosen):
    assume(clear_cut(task, chosen))
    twice = Task(
        task.support.repeat(1, 2, 1), task.labels.repeat(2), task.query.repeat(1, 2, 1), task.ways
    )
    doubled = Options(**{**vars(chosen), "z": None if chosen.z is None else 2 * chosen.z})
    plain, other = rectify(task, chosen), rectify(twice, doubled)
    same(other.prototypes, plain.prototypes)
    same(other.scores, plain.scores.repeat(1, 2, 1))


@steady
@given(tasks(), options)
def test_a_query_given_twice_scores_the_same_twice(task, chosen):
    twice = task._replace(query=torch.cat([task.query, task.query[:, :1]], dim=1))
    assume(smallest_shifted_norm(twice, reference_of(twice, chosen)) > 0.01)
    scores = rectify(twice, chosen).scores
    same(scores[:, -1], scores[:, 0])


# --- norms and directions -----------------------------------------------------------------------


@steady
@given(tasks(), options, st.data())
def test_scaling_each_feature_by_a_positive_factor_changes_nothing(task, chosen, data):
    assume(clear_cut(task, chosen))

    def factors(n: int) -> Tensor:
        exponents = data.draw(st.lists(st.floats(-12, 12), min_size=n, max_size=n))
        return 10.0 ** torch.tensor(exponents, dtype=torch.float64).reshape(1, n, 1)

    other = task._replace(
        support=task.support * factors(task.support.shape[1]),
        query=task.query * factors(task.query.shape[1]),
    )
    same(rectify(other, chosen).scores, rectify(task, chosen).scores)


@steady
@given(tasks(), options, st.integers(0, 2**32 - 1))
def test_rotating_all_features_rotates_the_prototypes_and_keeps_the_scores(task, chosen, seed):
    assume(clear_cut(task, chosen))
    dim = task.support.shape[-1]
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))
    rotation = torch.from_numpy(rotation)
    plain = rectify(task, chosen)
    rotated = task._replace(support=task.support @ rotation, query=task.query @ rotation)
    other = rectify(rotated, chosen)
    same(other.scores, plain.scores)
    same(other.prototypes, plain.prototypes @ rotation)


@steady
@given(tasks(), options, st.sampled_from([torch.float32, torch.float64]))
def test_scores_are_cosines_and_prototypes_are_within_the_unit_ball(task, chosen, dtype):
    reference = reference_of(task, chosen)
    assume(smallest_shifted_norm(task, reference) > 0.3)
    task = task._replace(support=task.support.to(dtype), query=task.query.to(dtype))
    got = rectify(task, chosen)
    assert got.scores.abs().max() <= 1 + 1e-5
    assert got.prototypes.norm(dim=-1).max() <= 1 + 1e-5


# --- Z and the weights --------------------------------------------------------------------------


@steady
@given(tasks(), options)
def test_z_of_zero_is_the_shift_alone_exactly(task, chosen):
    got = rectify(task, Options(**{**vars(chosen), "z": 0, "shift": True}))
    basic = functional.basic_prototypes(task.support, task.labels, task.ways)
    xi = functional.cross_class_shift(task.support, task.query)
    _, scores = UnitRows.of(task.query).shifted_cosines(xi, basic)
    assert torch.equal(got.prototypes, basic)
    assert torch.equal(got.shift, xi)
    assert torch.equal(got.scores, scores)


def joining(scores, z, **how):
    """Which query joins which class, (tasks, n_query, ways), bool."""
    places, taken = functional.confident_queries(scores, z, **how)
    return torch.zeros_like(scores).scatter_add(-2, places, taken.to(scores.dtype)) > 0


@steady
@given(tasks(), options)
def test_the_z_most_confident_queries_join_each_class(task, chosen):
    scores = rectify(task, Options(z=0, shift=chosen.shift)).scores
    joined = joining(scores, chosen.z, rank=chosen.rank, assignment=chosen.assignment)
    confidence = functional.probabilities(scores) if chosen.rank == "softmax" else scores
    predicted = functional.predictions(scores)
    for n in range(task.ways):
        inside = joined[0, :, n]
        if chosen.assignment == "predicted":
            candidates = predicted[0] == n
        else:
            candidates = torch.ones_like(inside)
        assert not (inside & ~candidates).any()
        available = int(candidates.sum())
        assert int(inside.sum()) == (available if chosen.z is None else min(chosen.z, available))
        outside = candidates & ~inside
        if inside.any() and outside.any():
            assert confidence[0, inside, n].min() >= confidence[0, outside, n].max() - 1e-12


@steady
@given(tasks(), options)
def test_weights_are_nonnegative_and_sum_to_one(task, chosen):
    samples = torch.cat([task.support, task.query], dim=1)
    basic = functional.basic_prototypes(task.support, task.labels, task.ways)
    scores = UnitRows.of(samples).cosines(basic)
    joined = joining(scores[:, len(task.labels) :], chosen.z)
    labeled = functional.membership(task.labels, task.ways).unsqueeze(0)
    members = torch.cat([labeled, joined], dim=1)
    logits = functional.log_weights(scores, chosen.epsilon, chosen.weighting)
    weights = functional.sample_weights(logits, members)
    assert (weights >= 0).all()
    assert not weights[~members].any()
    same(weights.sum(dim=1), torch.ones(1, task.ways, dtype=torch.float64))
