"""tft-head, the TIM methods and pt-map against slow reference implementations."""

from dataclasses import replace

import pytest
import torch

from helpers.random_tasks import random_tasks
from protorect import METHODS, OptionError, method
from protorect.methods._solvers import blocks
from reference import transduction as reference

# Few iterations are enough to detect a wrong step.
SHORT = {
    "tft-head": {},
    "tim": {"iterations": 12},
    "tim-adm": {"iterations": 12},
    "alpha-tim": {"iterations": 12},
    "pt-map": {"iterations": 6},
}
TASKS = {
    "unequal shots": random_tasks((2, 1, 3), 9),
    "one shot": random_tasks((1, 1, 1, 1), 9),
    "one query": random_tasks((2, 1, 3), 1),
    "fewer queries than ways": random_tasks((1, 2, 1, 1, 2), 3),
    "more samples than dimensions": random_tasks((2, 1, 3), 25, dim=6),
    "five shots": random_tasks((5, 5), 9),
    "six shots": random_tasks((6, 6), 9),
}


def assert_agrees(chosen, task, **options):
    """Compare the probabilities of every task with those of the reference."""
    support, labels, query = task
    scores = chosen(support, labels, query)
    function = getattr(reference, chosen.name.partition(":")[0].replace("-", "_"))
    for actual, s, q in zip(scores, support, query, strict=True):
        expected = function(s, labels, q, int(labels.max()) + 1, **options)
        torch.testing.assert_close(actual.exp(), expected.exp(), atol=2e-7, rtol=0)


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("kind", TASKS)
def test_agrees_with_the_reference(name, kind):
    assert_agrees(METHODS[name].with_options(**SHORT[name]), TASKS[kind], **SHORT[name])


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        (
            "tft-head:iterations=7,learning_rate=0.01,scale=5.0,entropy=0.3",
            {"iterations": 7, "learning_rate": 0.01, "scale": 5.0, "entropy": 0.3},
        ),
        (
            "tim:iterations=7,learning_rate=0.01,scale=4.0,"
            "cross_entropy=0.5,marginal=0.7,conditional=0.2",
            {
                "iterations": 7,
                "learning_rate": 0.01,
                "scale": 4.0,
                "weights": (0.5, 0.7, 0.2),
            },
        ),
        (
            "tim-adm:iterations=7,scale=4.0,cross_entropy=0.5,marginal=0.7,conditional=0.2",
            {"iterations": 7, "scale": 4.0, "weights": (0.5, 0.7, 0.2)},
        ),
        (
            "alpha-tim:iterations=7,cross_entropy=0.5,marginal=0.7,conditional=0.2,"
            "alpha=1.5,alpha_many=3.0",
            {"iterations": 7, "weights": (0.5, 0.7, 0.2), "alpha": 1.5, "alpha_many": 3.0},
        ),
        (
            "pt-map:power=0.8,sharpness=4.0,iterations=7,rate=0.5,proportions=free",
            {"power": 0.8, "sharpness": 4.0, "iterations": 7, "rate": 0.5, "proportions": "free"},
        ),
    ],
)
def test_every_option_agrees_with_the_reference(spec, options):
    assert_agrees(method(spec), random_tasks((2, 1, 3), 9), **options)


@pytest.mark.parametrize("name", SHORT)
def test_features_that_require_gradients_give_scores_without(name):
    support, labels, query = random_tasks((2, 1, 3), 9)
    before = support.clone()
    chosen = METHODS[name].with_options(**SHORT[name])
    assert not chosen(support.requires_grad_(), labels, query).requires_grad
    assert torch.equal(support, before)


EXTREME_OPTIONS = {
    "tft-head": ["", "scale=1000,learning_rate=1"],
    "tim": ["iterations=40", "iterations=40,scale=1000,learning_rate=0.1"],
    "tim-adm": ["", "scale=1000", "cross_entropy=1e-6,marginal=100"],
    "alpha-tim": ["iterations=40", "iterations=40,scale=1000,learning_rate=0.1,alpha=1.01"],
    "pt-map": ["", "sharpness=100", "proportions=free,sharpness=100"],
}


@pytest.mark.parametrize("name", EXTREME_OPTIONS)
@pytest.mark.parametrize("n_query", [1, 2, 9])
@pytest.mark.parametrize("kind", ["zero", "equal", "huge", "tiny", "opposite"])
def test_extreme_features_and_options_give_finite_scores(name, n_query, kind):
    support, labels, query = random_tasks((2, 1, 3), n_query, tasks=2, dtype=torch.float32)
    if kind == "zero":
        support, query = support * 0, query * 0
    elif kind == "equal":
        support, query = torch.ones_like(support), torch.ones_like(query)
    elif kind == "opposite":
        query = -support[:, :1].expand(-1, n_query, -1)
    else:
        factor = 1e30 if kind == "huge" else 1e-30
        support, query = factor * support, factor * query
    for options in EXTREME_OPTIONS[name]:
        scores = method(f"{name}:{options}")(support, labels, query)
        assert scores.isfinite().all(), options


@pytest.mark.parametrize("name", SHORT)
def test_scores_do_not_depend_on_the_blocks_of_tasks(name, monkeypatch):
    support, labels, query = random_tasks((2, 1, 3), 9)
    chosen = METHODS[name].with_options(**SHORT[name])
    expected = chosen(support, labels, query)
    sizes = []
    original = blocks.blocks

    def one_task_per_block(*arguments):
        for block in original(arguments[0], 1):
            sizes.append(len(block.samples))
            yield block

    monkeypatch.setattr(blocks, "blocks", one_task_per_block)
    torch.testing.assert_close(chosen(support, labels, query).exp(), expected.exp())
    assert sizes == [1, 1, 1]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tim:iterations=-1", "iterations is -1; it must be a whole number from 0 up."),
        ("tim:scale=nan", "scale is nan; it must lie in 0 .. 1e+06."),
        ("tim:learning_rate=-1", "learning_rate is -1.0; it must lie in"),
        ("tim:marginal=inf", "marginal is inf"),
        ("tim-adm:cross_entropy=0", "cross_entropy is 0.0; it must lie in 1e-06 .. 1e+06."),
        ("alpha-tim:alpha=1", "alpha is 1.0; it must lie in 1.01 .. 100."),
        ("alpha-tim:alpha_many=0.5", "alpha_many is 0.5"),
        ("tft-head:iterations=1.5", "iterations=1.5: a whole number"),
        ("tft-head:scale=x", "scale=x: a number is expected"),
        ("pt-map:proportions=equals", "unknown proportions 'equals'. Did you mean 'equal'?"),
        ("pt-map:power=0", "power is 0.0; it must lie in 0.01 .. 10."),
        ("pt-map:rate=2", "rate is 2.0; it must lie in 0 .. 1."),
        ("pt-map:temperature=2", "unknown option of pt-map 'temperature'"),
    ],
)
def test_an_invalid_option_is_refused(spec, message):
    with pytest.raises(OptionError) as error:
        method(spec)
    assert message in str(error.value)


def test_defaults_are_those_of_the_papers():
    tim, alpha, adm = (METHODS[name].options for name in ("tim", "alpha-tim", "tim-adm"))
    assert (tim.iterations, tim.learning_rate, tim.scale) == (1000, 1e-4, 15)
    assert (tim.cross_entropy, tim.marginal, tim.conditional) == (0.1, 1, 0.1)
    assert (adm.iterations, adm.cross_entropy, adm.conditional) == (150, 0.1, 0.1)
    assert (alpha.cross_entropy, alpha.marginal, alpha.conditional) == (1, 1, 1)
    assert [alpha.alpha_for(shots) for shots in (1, 3, 5, 20)] == [2, 4.5, 7, 7]
    assert replace(alpha, alpha=3.0).alpha_for(1) == 3
    assert METHODS["tft-head"].options.learning_rate == 5e-5
