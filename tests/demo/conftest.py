"""The demonstration with two epochs of two small steps, and 20 episodes."""

from dataclasses import replace

import pytest

from protorect.demo.digits import Plan, learn, measure


@pytest.fixture(scope="session")
def plan():
    planned = Plan.of(20, 2, seed=3)
    return planned._replace(recipe=replace(planned.recipe, steps_per_epoch=2, batch_size=16))


@pytest.fixture(scope="session")
def learned(plan):
    return learn(plan)


@pytest.fixture(scope="session")
def result(plan, learned):
    return measure(plan, learned)
