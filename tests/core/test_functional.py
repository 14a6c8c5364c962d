"""The batched equations against the slow reference in `reference/rectification.py`."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from protorect.core import functional
from protorect.core.functional import Options
from protorect.core.unit_rows import UnitRows
from protorect.errors import OptionError
from reference import rectification as paper

EXACT = {"rtol": 0, "atol": 1e-12}  # float64 features
CLOSE = {"rtol": 0, "atol": 5e-6}  # computed in float32


class Tasks(NamedTuple):
    """A batch of tasks, with as many labels as support samples."""

    support: Tensor  # (tasks, n_support, dim)
    labels: Tensor  # (tasks, n_support) or (n_support,)
    query: Tensor  # (tasks, n_query, dim)
    ways: int

    def to(self, dtype: torch.dtype) -> Tasks:
        return self._replace(support=self.support.to(dtype), query=self.query.to(dtype))


def clusters(
    shots=(1, 4, 2), queries=(6, 2, 5), *, tasks=2, dim=6, seed=0, spread=1.0, distance=1.2
) -> Tasks:
    """Gaussian clusters; every task has its own random order of samples."""
    random = torch.Generator().manual_seed(seed)
    ways = len(shots)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    centers = 0.5 + distance * normal(tasks, ways, dim)

    def sampled(numbers) -> tuple[Tensor, Tensor]:
        classes = torch.arange(ways).repeat_interleave(torch.tensor(numbers))
        order = [torch.randperm(len(classes), generator=random) for _ in range(tasks)]
        classes = torch.stack([classes[places] for places in order])  # (tasks, n)
        near = torch.stack([centers[task][classes[task]] for task in range(tasks)])
        return near + spread * normal(*near.shape), classes

    support, labels = sampled(shots)
    query, _ = sampled(queries)
    return Tasks(support, labels, query, ways)


def references_of(batch: Tasks, **options) -> list[paper.Rectification]:
    """Reference results of every task; `options` are those of `Options`."""
    options["move"] = options.pop("shift", True)
    labels = batch.labels.expand(len(batch.support), -1)
    return [
        paper.rectify_episode(
            support.double().numpy(), places.tolist(), query.double().numpy(), batch.ways, **options
        )
        for support, places, query in zip(batch.support, labels, batch.query, strict=True)
    ]


def stacked(references: list[paper.Rectification], field: str) -> np.ndarray:
    return np.stack([np.asarray(getattr(reference, field)) for reference in references])


def compare(got: Tensor, expected: np.ndarray, tolerance: dict = EXACT) -> None:
    assert tuple(got.shape) == expected.shape
    np.testing.assert_allclose(got.double().numpy(), expected, **tolerance)


def check(batch: Tasks, tolerance: dict = EXACT, **options) -> list[paper.Rectification]:
    """`rectify` agrees with the reference in everything it returns."""
    got = functional.rectify(*batch, Options(**options))
    references = references_of(batch, **options)
    if options.get("shift", True):
        compare(got.shift, stacked(references, "xi"), tolerance)
    else:
        assert got.shift is None
    compare(got.prototypes, stacked(references, "prototypes"), tolerance)
    compare(got.scores, stacked(references, "scores"), tolerance)
    return references


CHOICES = [
    {"weighting": weighting, "shift": shift, "rank": rank, "assignment": assignment}
    for weighting, shift, rank, assignment in itertools.product(
        ("samples", "classes"), (True, False), ("cosine", "softmax"), ("predicted", "overlapping")
    )
]


def named(choice) -> str:
    return "-".join(str(value) for value in choice.values())


every_choice = pytest.mark.parametrize("choice", CHOICES, ids=named)
both_weightings = pytest.mark.parametrize("weighting", ["samples", "classes"])


# --- rectify ------------------------------------------------------------------------------------


@pytest.mark.parametrize("z", [0, 1, 3, 1000, None])
@every_choice
def test_rectify_agrees_with_the_reference(choice, z):
    check(clusters(), z=z, **choice)


def test_the_tasks_used_here_distinguish_the_options():
    """Otherwise the tests would pass if an option were ignored."""
    base = {"weighting": "samples", "shift": True, "rank": "cosine", "assignment": "predicted"}
    base |= {"z": 3, "epsilon": 10.0}
    plain = stacked(references_of(clusters(), **base), "scores")
    for name, other in {
        "weighting": "classes",
        "shift": False,
        "rank": "softmax",
        "assignment": "overlapping",
        "z": 2,
        "epsilon": 9.0,
    }.items():
        changed = stacked(references_of(clusters(), **{**base, name: other}), "scores")
        assert np.abs(changed - plain).max() > 1e-3, name


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 1000.0])
@every_choice
def test_any_sharpness(choice, epsilon):
    references = check(clusters(), epsilon=epsilon, z=3, **choice)
    assert np.isfinite(stacked(references, "scores")).all()


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_scale_is_that_of_the_softmax_rank(scale):
    batch = clusters((2, 2, 2), (9, 9, 9), seed=5)
    options = {"z": 3, "rank": "softmax"}
    ten = [reference.chosen for reference in references_of(batch, **options)]
    assert [reference.chosen for reference in check(batch, scale=scale, **options)] != ten


@every_choice
def test_twenty_ways_in_more_dimensions(choice):
    check(clusters((1,) * 20, (2,) * 20, tasks=1, dim=24, seed=3), z=1, **choice)


def test_unit_rows_may_be_given_in_place_of_features():
    support, labels, query, ways = clusters()
    plain = functional.rectify(support, labels, query, ways, Options())
    rows = UnitRows.of(support), labels, UnitRows.of(query), ways
    for got, expected in zip(functional.rectify(*rows, Options()), plain, strict=True):
        assert torch.equal(got, expected)


# --- equation by equation -----------------------------------------------------------------------


def test_normalize():
    features = clusters().support
    features[0, 1] = 0
    expected = [[paper.normalized(x) for x in task.numpy()] for task in features]
    compare(functional.normalize(features), np.array(expected))


def test_membership():
    got = functional.membership(torch.tensor([[0, 2], [1, 1]]), 3)
    assert got.tolist() == [
        [[True, False, False], [False, False, True]],
        [[False, True, False], [False, True, False]],
    ]


def test_basic_prototypes_eq_3():
    batch = clusters()
    got = functional.basic_prototypes(batch.support, batch.labels, batch.ways)
    compare(got, stacked(references_of(batch), "basic"))


def test_shift_eq_8_is_between_means_over_samples():
    batch = clusters((1, 9), (2, 2))
    got = functional.cross_class_shift(batch.support, batch.query)
    compare(got, stacked(references_of(batch), "xi"))
    prototypes = functional.basic_prototypes(batch.support, batch.labels, batch.ways)
    of_classes = prototypes.mean(dim=-2) - functional.normalize(batch.query).mean(dim=-2)
    assert (got - of_classes).abs().max() > 0.1  # the unequal classes distinguish the two


def test_cosines_do_not_depend_on_the_norm_of_a_prototype():
    batch = clusters()
    queries = batch.query.numpy()
    directions = batch.support[:, :3] * torch.tensor([[1e-3], [1.0], [1e3]], dtype=torch.float64)
    expected = [
        [paper.cosines(x, list(task)) for x in rows]
        for rows, task in zip(queries, directions.numpy(), strict=True)
    ]
    compare(UnitRows.of(batch.query).cosines(directions), np.array(expected))


def test_predictions():
    references = references_of(clusters(), z=0)
    scores = torch.from_numpy(stacked(references, "scores"))
    assert functional.predictions(scores).tolist() == [
        reference.predicted for reference in references
    ]


@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_the_first_class_wins_a_tie(transposed):
    scores = torch.zeros(2, 40, 5)
    scores[0, :, [2, 4]] = 0.5
    scores[1, :20, 1:] = 0.25
    if transposed:  # the layout that `cosines` leaves
        scores = scores.mT.contiguous().mT
    assert functional.predictions(scores).tolist() == [[2] * 40, [1] * 20 + [0] * 20]


@pytest.mark.parametrize("scale", [10.0, 3.0])
def test_probabilities_eq_1(scale):
    scores = stacked(references_of(clusters()), "scores")
    expected = [[paper.softmax([scale * c for c in row]) for row in task] for task in scores]
    compare(functional.probabilities(torch.from_numpy(scores), scale), np.array(expected))


def test_the_default_scale_of_probabilities_is_ten():
    scores = torch.tensor([[[0.5, 0.25]]])
    assert torch.equal(functional.probabilities(scores), functional.probabilities(scores, 10.0))


@pytest.mark.parametrize("z", [0, 1, 2, 4, 13, 99, None])
@pytest.mark.parametrize("assignment", ["predicted", "overlapping"])
@pytest.mark.parametrize("rank", ["cosine", "softmax"])
def test_confident_queries(rank, assignment, z):
    batch = clusters()
    basic = references_of(batch, z=0)  # shifted queries and their scores with the basic prototypes
    scores = torch.from_numpy(stacked(basic, "scores"))
    places, taken = functional.confident_queries(scores, z, rank=rank, assignment=assignment)
    assert places.shape == taken.shape == (*scores.shape[:1], min(13 if z is None else z, 13), 3)
    for task, reference in enumerate(basic):
        for n in range(batch.ways):
            chosen = paper.pseudo_labeled(
                reference.queries, reference.basic, n, z, rank, assignment
            )
            got = places[task, :, n][taken[task, :, n]]
            assert sorted(got.tolist()) == sorted(chosen)


@pytest.mark.parametrize("epsilon", [0.0, 10.0, 1000.0])
@both_weightings
def test_sample_weights_eq_6(weighting, epsilon):
    batch = clusters()
    references = references_of(batch, weighting=weighting, epsilon=epsilon, z=3)
    n_support, n_query = batch.support.shape[1], batch.query.shape[1]
    shape = (len(references), n_support + n_query, batch.ways)
    scores, members, expected = np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape)
    for task, reference in enumerate(references):
        samples = [*batch.support[task].numpy(), *reference.queries]
        scores[task] = [paper.cosines(x, reference.basic) for x in samples]
        for n in range(batch.ways):
            places = (batch.labels[task] == n).nonzero().flatten().tolist()
            places += [n_support + i for i in reference.chosen[n]]
            members[task, places, n] = True
            expected[task, places, n] = reference.weights[n]
    scores, members = torch.from_numpy(scores), torch.from_numpy(members)
    got = functional.sample_weights(functional.log_weights(scores, epsilon, weighting), members)
    compare(got, expected)
    assert not got[~members].any()


@every_choice
def test_rectified_prototypes_eq_5(choice):
    batch = clusters()
    references = references_of(batch, z=3, **choice)
    query = torch.from_numpy(stacked(references, "queries"))
    basic = torch.from_numpy(stacked(references, "basic"))
    scores = UnitRows.of(query).cosines(basic)
    got = functional.rectified_prototypes(
        batch.support, batch.labels, query, scores, basic, Options(z=3, **choice)
    )
    compare(got, stacked(references, "prototypes"))


# --- few samples, no samples, ties --------------------------------------------------------------


@every_choice
def test_a_class_that_no_query_is_predicted_as_keeps_its_weighted_support(choice):
    batch = clusters((6, 2, 6), (7, 0, 6), spread=0.3, distance=2.0, seed=1)
    references = check(batch, **choice)
    if choice["assignment"] == "predicted":
        assert all(not reference.chosen[1] for reference in references)
        assert all(len(reference.weights[1]) == 2 for reference in references)


@every_choice
@pytest.mark.parametrize(
    ("shots", "queries"),
    [((3, 2), (1, 0)), ((1, 1), (4, 3)), ((1, 1, 1), (9, 0, 1)), ((1,), (1,))],
    ids=["one query", "two ways", "one shot", "one of everything"],
)
def test_small_tasks(choice, shots, queries):
    check(clusters(shots, queries, seed=2), z=2, **choice)


@every_choice
def test_one_way(choice):
    # Every query has probability 1; with Z of them the softmax rank has only ties.
    check(clusters((3,), (5,)), z=None if choice["rank"] == "softmax" else 2, **choice)


def test_z_of_zero_keeps_the_basic_prototypes_bit_for_bit():
    batch = clusters()
    basic = functional.basic_prototypes(*batch[:2], batch.ways)
    for choice in CHOICES:
        got = functional.rectify(*batch, Options(z=0, **choice))
        assert torch.equal(got.prototypes, basic)


@both_weightings
@pytest.mark.parametrize("shift", [True, False])
def test_identical_prototypes(weighting, shift):
    """Every query is a tie, and the first class takes them all."""
    query = clusters().query
    support = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=torch.float64).expand(2, 3, 6)
    batch = Tasks(support, torch.arange(3), query, 3)
    references = check(batch, z=4, weighting=weighting, shift=shift)
    assert all(len(reference.chosen[0]) == 4 for reference in references)


@every_choice
def test_labels_shared_by_all_tasks_or_given_for_each(choice):
    shared = torch.tensor([1, 0, 2, 1, 1, 0, 2])
    batch = clusters()._replace(labels=shared)
    check(batch, z=3, **choice)
    per_task = batch._replace(labels=shared.expand(2, -1))
    options = Options(z=3, **choice)
    one, other = functional.rectify(*batch, options), functional.rectify(*per_task, options)
    assert torch.equal(one.scores, other.scores)


# --- zero vectors -------------------------------------------------------------------------------


@every_choice
def test_zero_vectors_among_support_and_queries(choice):
    batch = clusters()
    batch.support[0, :3] = 0
    batch.support[1, 4] = 0
    batch.query[0, 2] = 0
    batch.query[1, [0, 5]] = 0
    check(batch, z=None, **choice)


@every_choice
def test_a_class_of_zero_vectors(choice):
    batch = clusters()
    batch.support[batch.labels == 1] = 0
    got = functional.rectify(*batch, Options(z=0, **choice))
    assert not got.prototypes[:, 1].any()
    assert not got.scores[..., 1].any()
    check(batch, z=None, **choice)


@every_choice
def test_nothing_but_zero_vectors(choice):
    batch = clusters()
    zeros = batch._replace(support=batch.support * 0, query=batch.query * 0)
    references = check(zeros, z=None, **choice)
    assert not stacked(references, "scores").any()


@both_weightings
@pytest.mark.parametrize("query", [[0.0, 1.0, 0.0], [1.0, 2.0, 3.0]])
def test_a_query_that_the_shift_makes_zero(weighting, query):
    """The mean of the support is zero, so a single query is shifted to zero."""
    support = torch.tensor([[[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]], dtype=torch.float64)
    batch = Tasks(support, torch.arange(2), torch.tensor([[query]], dtype=torch.float64), 2)
    for dtype, tolerance in ((torch.float64, EXACT), (torch.float32, CLOSE)):
        references = check(batch.to(dtype), tolerance, weighting=weighting)
        assert not stacked(references, "scores").any()
        assert references[0].chosen == [[0], []]


# --- floating types and magnitudes --------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@every_choice
def test_computed_in_float32_or_better(choice, dtype):
    batch = clusters().to(dtype)
    tolerance = EXACT if dtype == torch.float64 else CLOSE
    check(batch, tolerance, z=3, **choice)
    computed = torch.float64 if dtype == torch.float64 else torch.float32
    got = functional.rectify(*batch, Options(z=3, **choice))
    assert got.scores.dtype == got.prototypes.dtype == computed
    assert got.shift is None or got.shift.dtype == computed
    assert functional.normalize(batch.query).dtype == computed


def test_float16_features_whose_squares_are_beyond_it():
    batch = clusters()
    check(
        batch._replace(support=batch.support * 5e3, query=batch.query * 5e3).to(torch.half), CLOSE
    )


@pytest.mark.parametrize("size", [1e30, 1e-30])
@every_choice
def test_very_large_and_very_small_features(choice, size):
    batch = clusters()
    batch = batch._replace(support=batch.support * size, query=batch.query * size)
    check(batch.to(torch.float32), CLOSE, z=3, **choice)


def test_very_large_beside_very_small_features():
    batch = clusters()
    batch.support[:, ::2] *= 1e30
    batch.support[:, 1::2] *= 1e-30
    batch.query[:, ::3] *= 1e-30
    batch.query[:, 1::3] *= 1e30
    check(batch.to(torch.float32), CLOSE, z=3)


@every_choice
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_inputs_are_not_modified(choice, dtype):
    batch = clusters().to(dtype)
    batch.support[0, 0], batch.query[0, 0] = 0, 0
    before = [part.clone() for part in batch[:3]]
    functional.rectify(*batch, Options(z=3, **choice))
    functional.normalize(batch.support)
    scores = UnitRows.of(batch.query).cosines(functional.normalize(batch.query))
    unchanged = scores.clone()
    functional.predictions(scores)
    functional.probabilities(scores)
    functional.confident_queries(scores, 2)
    functional.sample_weights(functional.log_weights(scores, 10.0, choice["weighting"]), scores > 0)
    assert torch.equal(scores, unchanged)
    assert all(torch.equal(one, other) for one, other in zip(batch[:3], before, strict=True))


# --- options ------------------------------------------------------------------------------------


def test_the_defaults_are_the_contract():
    assert dataclasses.asdict(Options()) == {
        "z": 8,
        "epsilon": 10.0,
        "weighting": "samples",
        "shift": True,
        "rank": "cosine",
        "assignment": "predicted",
        "scale": 10.0,
    }


@pytest.mark.parametrize(
    ("name", "value", "suggested"),
    [
        ("weighting", "sample", "samples"),
        ("weighting", "class", "classes"),
        ("rank", "cos", "cosine"),
        ("rank", "soft-max", "softmax"),
        ("assignment", "predict", "predicted"),
        ("assignment", "overlap", "overlapping"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_nearest_one(name, value, suggested):
    with pytest.raises(OptionError, match=f"unknown {name} '{value}'.* mean '{suggested}'"):
        Options(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("z", -1),
        ("z", 2.5),
        ("z", True),
        ("z", "8"),
        ("epsilon", -0.1),
        ("epsilon", float("nan")),
        ("epsilon", float("inf")),
        ("epsilon", 1e39),
        ("epsilon", None),
        ("scale", -1.0),
        ("scale", "ten"),
        ("shift", "no"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(name, value):
    with pytest.raises(OptionError, match=re.escape(f"{name} is {value!r}; it must")):
        Options(**{name: value})


def test_options_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().z = 3


# --- limits of floating point, ties, many classes -----------------------------------------------


def test_a_feature_whose_inverse_norm_overflows_counts_as_zero():
    batch = clusters().to(torch.float32)
    short, zero = batch.query.clone(), batch.query.clone()
    short[:, 0] *= 1e-42
    zero[:, 0] = 0
    scores = [functional.rectify(*batch._replace(query=q), Options()).scores for q in (short, zero)]
    assert scores[0].isfinite().all()
    assert torch.equal(*scores)


def test_of_equally_confident_queries_the_first_join():
    scores = torch.full((1, 20, 2), 0.5) * torch.tensor([1.0, -1.0])
    places, taken = functional.confident_queries(scores, 3)
    assert places[0, :, 0].tolist() == [0, 1, 2]
    assert taken[0, :, 0].tolist() == [True] * 3
    assert not taken[0, :, 1].any()


def test_queries_of_many_classes_are_not_mixed_up():
    ways = 3000
    scores = torch.randn(1, 2 * ways, ways, generator=torch.Generator().manual_seed(0)).clamp(-1, 1)
    places, taken = functional.confident_queries(scores, 2)
    predicted = functional.predictions(scores)
    assert (predicted[0][places[0]] == torch.arange(ways))[taken[0]].all()
    assert int(taken.sum()) == int(predicted[0].bincount(minlength=ways).clamp(max=2).sum())
