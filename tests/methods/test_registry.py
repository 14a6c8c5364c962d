"""Methods by name, and their options as text."""

import numpy as np
import pytest
import torch

from protorect import METHODS, OptionError, method
from protorect.core.functional import Options
from protorect.methods import PAPER, PICTURE_METHODS, chosen_methods, get_method
from reference import rectification as reference


def test_five_methods_of_the_paper():
    assert PAPER == ("cspn", "bd-c", "bd-i", "bd-cspn", "bd-cspn-classes")
    assert set(PAPER) == set(reference.METHODS) <= set(METHODS)
    assert method("bd-cspn").options == Options()


@pytest.mark.parametrize("name", PAPER)
def test_a_method_is_called_on_a_batch_of_tasks(name):
    generator = torch.Generator().manual_seed(0)
    support = torch.randn(3, 6, 8, generator=generator)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    query = torch.randn(3, 10, 8, generator=generator)
    scores = METHODS[name](support, labels, query)
    assert scores.shape == (3, 10, 3)
    for task in range(3):
        expected = reference.scores(
            name, support[task].numpy(), labels.numpy(), query[task].numpy(), ways=3
        )
        np.testing.assert_allclose(scores[task], expected, atol=1e-5)


def test_options_follow_the_name():
    chosen = method("bd-cspn:z=4,epsilon=2.5,rank=softmax,shift=no,assignment=overlapping")
    assert chosen.options == Options(
        z=4, epsilon=2.5, rank="softmax", shift=False, assignment="overlapping"
    )
    assert chosen.name == "bd-cspn:z=4,epsilon=2.5,rank=softmax,shift=false,assignment=overlapping"
    assert method("bd-i:z=all").options.z is None
    assert method("bd-i:z=all").name == "bd-i:z=all"
    assert method(chosen) is chosen
    assert method("cspn").name == "cspn"


def test_options_given_in_two_steps_are_listed_together():
    chosen = method("bd-cspn:z=4").with_options(epsilon=2.5)
    assert chosen.name == "bd-cspn:z=4,epsilon=2.5"
    assert method(chosen.name) == chosen


def test_an_option_set_again_is_listed_once():
    chosen = method("bd-cspn:z=4,rank=softmax").with_options(z=8)
    assert chosen.name == "bd-cspn:z=8,rank=softmax"
    assert method(chosen.name) == chosen
    assert method("tft-head:steps=3").with_options(iterations=4).name == "tft-head:iterations=4"
    assert chosen.with_options() == chosen


def test_all_is_every_method_once():
    assert chosen_methods("all") == chosen_methods(["cspn", "all"]) == list(METHODS.values())
    assert [one.name for one in chosen_methods(["cspn:z=1", "cspn", "cspn:z=1"])] == [
        "cspn:z=1",
        "cspn",
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bd-csp", "unknown method 'bd-csp'. Did you mean 'bd-cspn'?"),
        ("zzz", f"Known: {', '.join(sorted(METHODS | PICTURE_METHODS))}"),
        ("tft", "fine-tunes the network on pictures, so features alone do not do"),
        ("tft:steps=3", "--method tft:iterations=3 --network RUN --pictures PACKED"),
        ("bd-cspn:epsilom=3", "unknown option of bd-cspn 'epsilom'. Did you mean 'epsilon'?"),
        ("bd-cspn:z=4,z=5", "an option is given twice"),
        ("BD-CSPN", "Did you mean 'bd-cspn'?"),
        ("bd-cspn:z", "'z' is not an option; write name=value"),
        ("bd-cspn:z=some", "z=some: a whole number or none is expected"),
        ("bd-cspn:z=-1", "z is -1; it must be a whole number from 0 up or None"),
        ("bd-cspn:epsilon=x", "epsilon=x: a number is expected"),
        ("bd-cspn:epsilon=nan", "epsilon is nan"),
        ("bd-cspn:shift=maybe", "shift=maybe: true or false is expected"),
        ("bd-cspn:rank=cosin", "unknown rank 'cosin'. Did you mean 'cosine'?"),
    ],
)
def test_an_unknown_method_or_option_is_refused(spec, message):
    with pytest.raises(OptionError) as error:
        method(spec)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("earlier", "present"),
    [
        ("soft-kmeans:rounds=3,normalise=true", "soft-kmeans:iterations=3,normalize=true"),
        ("label-propagation:neighbours=3", "label-propagation:neighbors=3"),
        ("laplacian-shot:neighbours=3,rounds=2", "laplacian-shot:neighbors=3,iterations=2"),
        ("simpleshot:centre=support", "simpleshot:center=support"),
        ("tft-head:steps=3", "tft-head:iterations=3"),
        ("tim:temperature=3.0", "tim:scale=3.0"),
        ("alpha-tim:temperature=3.0", "alpha-tim:scale=3.0"),
        ("tim-adm:temperature=3.0", "tim-adm:scale=3.0"),
        ("pt-map:steps=3,prior=free", "pt-map:iterations=3,proportions=free"),
        ("bd-cspn-plus:rounds=2,steps=3", "bd-cspn-plus:iterations=2,regression_iterations=3"),
    ],
)
def test_earlier_names_of_options_are_accepted(earlier, present):
    assert method(earlier) == method(present)
    assert method(earlier).name == present


def test_an_option_given_by_two_of_its_names_is_refused():
    with pytest.raises(OptionError, match="given twice"):
        method("tft-head:steps=3,iterations=4")
    with pytest.raises(OptionError, match="given twice"):
        METHODS["tft-head"].with_options(steps=3, iterations=4)


def test_get_method_is_another_name():
    assert get_method("bd-cspn:z=4") == method("bd-cspn:z=4")
