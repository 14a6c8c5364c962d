"""What the papers say of their methods, on pictures of digits: 10 classes, 64 pixels each."""

import pytest
from sklearn.datasets import load_digits

from protorect import evaluate


@pytest.fixture(scope="module")
def accuracy():
    digits = load_digits()
    names = ["cspn", "tim", "tim-adm", "alpha-tim", "pt-map", "pt-map:prior=free"]
    return {
        world: {
            result.method: result.accuracy
            for result in evaluate(
                digits.data, digits.target, names, shot=1, episodes=40, dirichlet=dirichlet
            )
        }
        for world, dirichlet in (("equal", None), ("unequal", 1.0))
    }


def test_pt_map_gains_where_classes_are_equal_and_loses_where_they_are_not(accuracy):
    assert accuracy["equal"]["pt-map"] > accuracy["equal"]["cspn"] + 5
    assert accuracy["equal"]["pt-map"] > accuracy["equal"]["pt-map:prior=free"]
    assert accuracy["unequal"]["pt-map"] < accuracy["unequal"]["cspn"] - 10
    assert accuracy["unequal"]["pt-map"] < accuracy["unequal"]["pt-map:prior=free"] - 5


def test_alpha_tim_is_better_than_tim_where_classes_are_unequal(accuracy):
    assert accuracy["unequal"]["alpha-tim"] > accuracy["unequal"]["tim"] + 5
    assert accuracy["unequal"]["alpha-tim"] > accuracy["unequal"]["cspn"] - 1
    assert accuracy["equal"]["tim"] > accuracy["equal"]["alpha-tim"]


def test_both_ways_to_solve_tim_agree(accuracy):
    assert accuracy["equal"]["tim"] > accuracy["equal"]["cspn"] + 5
    assert abs(accuracy["equal"]["tim"] - accuracy["equal"]["tim-adm"]) < 3
