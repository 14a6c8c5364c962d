"""Published differences between methods, on pictures of digits: 10 classes, 64 pixels each."""

import pytest
from sklearn.datasets import load_digits

from protorect import evaluate


@pytest.fixture(scope="module")
def accuracy():
    digits = load_digits()
    names = ["cspn", "tim", "tim-adm", "alpha-tim", "pt-map", "pt-map:proportions=free"]
    return {
        setting: {
            result.method: result.accuracy
            for result in evaluate(
                digits.data, digits.target, names, shot=1, episodes=40, dirichlet=dirichlet
            )
        }
        for setting, dirichlet in (("balanced", None), ("unbalanced", 1.0))
    }


def test_pt_map_gains_where_classes_are_balanced_only(accuracy):
    assert accuracy["balanced"]["pt-map"] > accuracy["balanced"]["cspn"] + 5
    assert accuracy["balanced"]["pt-map"] > accuracy["balanced"]["pt-map:proportions=free"]
    assert accuracy["unbalanced"]["pt-map"] < accuracy["unbalanced"]["cspn"] - 10
    assert accuracy["unbalanced"]["pt-map"] < accuracy["unbalanced"]["pt-map:proportions=free"] - 5


def test_alpha_tim_is_better_than_tim_where_classes_are_unbalanced(accuracy):
    assert accuracy["unbalanced"]["alpha-tim"] > accuracy["unbalanced"]["tim"] + 5
    assert accuracy["unbalanced"]["alpha-tim"] > accuracy["unbalanced"]["cspn"] - 1
    assert accuracy["balanced"]["tim"] > accuracy["balanced"]["alpha-tim"]


def test_both_solvers_of_tim_agree(accuracy):
    assert accuracy["balanced"]["tim"] > accuracy["balanced"]["cspn"] + 5
    assert abs(accuracy["balanced"]["tim"] - accuracy["balanced"]["tim-adm"]) < 3
