"""What every transductive method keeps to, and that each follows its slow reading."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from protorect import METHODS, OptionError, method
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers import adam as descent
from protorect.methods._solvers import blocks, transport
from protorect.methods._solvers import gram as span
from protorect.methods.alpha_tim import fast_exponents
from reference import transduction as slow

NAMES = ("tft-head", "tim", "tim-adm", "alpha-tim", "pt-map")
SHORTER = {"tim": "iterations", "alpha-tim": "iterations", "tim-adm": "iterations"}


def short(name):
    """The method with few iterations: enough to tell a wrong step from a right one."""
    return method(f"{name}:iterations=12" if name in SHORTER else name)


def task(shots=(2, 1, 3), n_query=9, dim=20, tasks=2, seed=0, dtype=torch.float64):
    """Tasks of overlapping classes with negative features and unequal shots."""
    generator = torch.Generator().manual_seed(seed)
    ways = len(shots)
    labels = torch.arange(ways).repeat_interleave(torch.tensor(shots))
    centres = torch.randn(tasks, ways, dim, generator=generator)
    classes = torch.randint(ways, (tasks, n_query), generator=generator)
    rows = [labels.expand(tasks, -1), classes]
    support, query = (
        torch.stack([c[i] for c, i in zip(centres, which, strict=True)])
        + torch.randn(tasks, which.shape[1], dim, generator=generator)
        for which in rows
    )
    return support.to(dtype), labels, query.to(dtype)


TASKS = {
    "unequal shots": task(),
    "one shot": task(shots=(1, 1, 1, 1)),
    "one query": task(n_query=1),
    "fewer queries than ways": task(shots=(1, 2, 1, 1, 2), n_query=3),
    "more samples than dimensions": task(n_query=25, dim=6),
    "five shots": task(shots=(5, 5)),
    "six shots": task(shots=(6, 6)),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", TASKS)
def test_each_follows_its_slow_reading(name, kind):
    support, labels, query = TASKS[kind]
    read = getattr(slow, name.replace("-", "_"))
    limits = {"iterations": 12} if name in SHORTER else {}
    scores = short(name)(support, labels, query)
    ways = int(labels.max()) + 1
    for ours, s, q in zip(scores, support, query, strict=True):
        theirs = read(s, labels, q, ways, **limits)
        torch.testing.assert_close(ours.exp(), theirs.exp(), atol=2e-7, rtol=0)


@pytest.mark.parametrize(
    ("spelling", "options"),
    [
        ("tft-head:steps=7,learning_rate=0.01,scale=5.0,entropy=0.3", None),
        (
            "tim:iterations=7,learning_rate=0.01,temperature=4.0,"
            "cross_entropy=0.5,marginal=0.7,conditional=0.2",
            {
                "iterations": 7,
                "learning_rate": 0.01,
                "temperature": 4.0,
                "weights": (0.5, 0.7, 0.2),
            },
        ),
        (
            "tim-adm:iterations=7,temperature=4.0,cross_entropy=0.5,marginal=0.7,conditional=0.2",
            {"iterations": 7, "temperature": 4.0, "weights": (0.5, 0.7, 0.2)},
        ),
        (
            "alpha-tim:iterations=7,cross_entropy=0.5,marginal=0.7,conditional=0.2,"
            "alpha=1.5,alpha_many=3.0",
            {"iterations": 7, "weights": (0.5, 0.7, 0.2), "alpha": 1.5, "alpha_many": 3.0},
        ),
        ("pt-map:power=0.8,sharpness=4.0,steps=7,rate=0.5,prior=free", None),
    ],
)
def test_every_option_does_what_it_says(spelling, options):
    support, labels, query = task()
    chosen = method(spelling)
    read = getattr(slow, spelling.partition(":")[0].replace("-", "_"))
    scores = chosen(support, labels, query)
    given = vars(chosen.options) if options is None else options
    for ours, s, q in zip(scores, support, query, strict=True):
        theirs = read(s, labels, q, 3, **given)
        torch.testing.assert_close(ours.exp(), theirs.exp(), atol=2e-7, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_a_task_alone_is_the_task_in_a_batch(name):
    support, labels, query = task(tasks=3)
    scores = short(name)(support, labels, query)
    for i in range(3):
        alone = short(name)(support[i : i + 1], labels, query[i : i + 1])
        torch.testing.assert_close(scores[i : i + 1].exp(), alone.exp(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_order_does_not_matter(name):
    support, labels, query = task()
    scores = short(name)(support, labels, query)
    order, classes = torch.randperm(9), torch.tensor([2, 0, 1])
    moved = short(name)(support, classes[labels], query[:, order])
    expected = scores[:, order][..., classes.argsort()]
    torch.testing.assert_close(moved.exp(), expected.exp(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_given_stays_as_it_is_and_its_form_does_not_matter(name):
    support, labels, query = task()
    given = support.clone().requires_grad_(), labels.clone(), query.clone()
    scores = short(name)(*given)
    assert not scores.requires_grad
    for before, after in zip((support, labels, query), given, strict=True):
        assert torch.equal(before, after)
    order = torch.stack([torch.arange(6), torch.arange(6).flip(0)])  # another in each task
    own = support.gather(1, order.unsqueeze(2).expand_as(support))
    per_task = short(name)(own, labels[order], query)
    rows = short(name)(UnitRows.of(1000 * support), labels, UnitRows.of(query))
    with torch.inference_mode():
        inferred = short(name)(support, labels, query)
    for other in (per_task, rows, inferred):
        torch.testing.assert_close(other, scores, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_type_of_the_features(name, dtype):
    support, labels, query = task(dtype=dtype)
    scores = short(name)(support, labels, query)
    assert scores.shape == (2, 9, 3)
    assert scores.dtype == torch.promote_types(dtype, torch.float32)
    expected = short(name)(support.double(), labels, query.double())
    torch.testing.assert_close(scores.double().exp(), expected.exp(), atol=1e-3, rtol=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_query", [1, 2, 9])
@pytest.mark.parametrize("kind", ["zero", "equal", "huge", "tiny", "opposite"])
def test_no_task_gives_nan(name, n_query, kind):
    support, labels, query = task(n_query=n_query, dtype=torch.float32)
    if kind == "zero":
        support, query = support * 0, query * 0
    elif kind == "equal":
        support, query = torch.ones_like(support), torch.ones_like(query)
    elif kind == "opposite":
        query = -support[:, :1].expand(-1, n_query, -1)
    else:
        factor = 1e30 if kind == "huge" else 1e-30
        support, query = factor * support, factor * query
    for hard in HARD[name]:
        scores = method(f"{name}:{hard}")(support, labels, query)
        assert scores.isfinite().all(), hard


HARD = {
    "tft-head": ["", "scale=1000,learning_rate=1"],
    "tim": ["iterations=40", "iterations=40,temperature=1000,learning_rate=0.1"],
    "tim-adm": ["", "temperature=1000", "cross_entropy=1e-6,marginal=100"],
    "alpha-tim": ["iterations=40", "iterations=40,temperature=1000,learning_rate=0.1,alpha=1.01"],
    "pt-map": ["", "sharpness=100", "prior=free,sharpness=100"],
}


@pytest.mark.parametrize("name", NAMES)
def test_blocks_of_tasks_do_not_show(name, monkeypatch):
    support, labels, query = task()
    whole = short(name)(support, labels, query)
    sizes = []

    def one_at_a_time(*arguments):
        for samples, members in blocks.blocks(*arguments[:4], 1):
            sizes.append(len(samples))
            yield samples, members

    module = __import__(METHODS[name].function.__module__, fromlist=["blocks"])
    owner = __import__("protorect.methods.tim", fromlist=["blocks"])
    monkeypatch.setattr(owner if name == "alpha-tim" else module, "blocks", one_at_a_time)
    torch.testing.assert_close(short(name)(support, labels, query).exp(), whole.exp())
    assert sizes == [1, 1]


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("tim:iterations=-1", "iterations is -1; it must be a whole number from 0 up."),
        ("tim:temperature=nan", "temperature is nan; it must lie in 0 .. 1e+06."),
        ("tim:learning_rate=-1", "learning_rate is -1.0; it must lie in"),
        ("tim:marginal=inf", "marginal is inf"),
        ("tim-adm:cross_entropy=0", "cross_entropy is 0.0; it must lie in 1e-06 .. 1e+06."),
        ("alpha-tim:alpha=1", "alpha is 1.0; it must lie in 1.01 .. 100."),
        ("alpha-tim:alpha_many=0.5", "alpha_many is 0.5"),
        ("tft-head:steps=1.5", "steps=1.5: a whole number"),
        ("tft-head:scale=x", "scale=x: a number is wanted"),
        ("pt-map:prior=equals", "unknown prior 'equals'. Did you mean 'equal'?"),
        ("pt-map:power=0", "power is 0.0; it must lie in 0.01 .. 10."),
        ("pt-map:rate=2", "rate is 2.0; it must lie in 0 .. 1."),
        ("pt-map:temperature=2", "unknown option of pt-map 'temperature'"),
    ],
)
def test_an_option_that_cannot_be(spelling, message):
    with pytest.raises(OptionError) as error:
        method(spelling)
    assert message in str(error.value)


def test_adam_is_torchs_adam():
    generator = torch.Generator().manual_seed(0)
    ours = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    theirs = ours.clone().requires_grad_()
    adam, optimizer = descent.Adam(ours, 0.01), torch.optim.Adam([theirs], lr=0.01)
    for _ in range(30):
        gradient = torch.randn(3, 4, generator=generator, dtype=torch.float64)
        theirs.grad = gradient.clone()
        adam.step(gradient)
        optimizer.step()
    torch.testing.assert_close(ours, theirs.detach(), atol=1e-14, rtol=0)


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 10.0, 100.0])
def test_equal_parts_is_sinkhorns_assignment(sharpness):
    generator = torch.Generator().manual_seed(1)
    costs = torch.rand(6, 4, 24, generator=generator, dtype=torch.float64)
    costs[:, 0] += 0.5  # a class that nobody is near to
    start = torch.zeros(6, 4, 1, dtype=torch.float64)
    log_p, potentials = transport.equal_parts(-sharpness * costs, start)
    assert (log_p.exp().sum(dim=2) - 6).abs().max() < 2e-8
    torch.testing.assert_close(
        log_p, torch.log_softmax(-sharpness * costs + potentials, dim=1), atol=1e-9, rtol=0
    )
    if sharpness <= 10:
        expected = torch.stack([slow.sinkhorn(c.T, sharpness).T for c in costs])
        torch.testing.assert_close(log_p.exp(), expected, atol=1e-6, rtol=0)


def test_prototypes_known_by_inner_products():
    generator = torch.Generator().manual_seed(0)
    shares = torch.randn(2, 3, 7, generator=generator)
    for dim in (5, 9):  # fewer and more dimensions than samples
        samples = torch.randn(2, 7, dim, generator=generator)
        prototypes = shares @ samples
        distances = torch.cdist(prototypes, samples) ** 2
        lengths = samples.square().sum(dim=2).unsqueeze(1)
        expected = (lengths - distances) / 2
        known = span.span_of(samples)
        ours = known.closeness(known.combined(shares))
        torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [(1, [1]), (2, [2]), (6, [2, 3]), (36, [2, 2, 3, 3]), (10, [5, 2]), (4.5, [4.5]), (5, [5])],
)
def test_powers_are_squares_and_cubes_as_far_as_they_go(exponent, expected):
    assert fast_exponents(exponent) == expected


def test_defaults_of_the_papers():
    tim, alpha, adm = (METHODS[name].options for name in ("tim", "alpha-tim", "tim-adm"))
    assert (tim.iterations, tim.learning_rate, tim.temperature) == (1000, 1e-4, 15)
    assert (tim.cross_entropy, tim.marginal, tim.conditional) == (0.1, 1, 0.1)
    assert (adm.iterations, adm.cross_entropy, adm.conditional) == (150, 0.1, 0.1)
    assert (alpha.cross_entropy, alpha.marginal, alpha.conditional) == (1, 1, 1)
    assert [alpha.alpha_of(shots) for shots in (1, 3, 5, 20)] == [2, 4.5, 7, 7]
    assert replace(alpha, alpha=3.0).alpha_of(1) == 3
    assert np.isclose(METHODS["tft-head"].options.learning_rate, 5e-5)
