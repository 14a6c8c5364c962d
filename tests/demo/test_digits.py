"""The experiment of the demonstration, with a short training."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from protorect.demo.digits import BASE, NOVEL, SIZE, TURNS, Plan, measure, pack_digits
from protorect.errors import OptionError
from protorect.evaluation.evaluate import evaluate
from protorect.methods import PAPER
from protorect.paper.published import SHOTS


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    return pack_digits(tmp_path_factory.mktemp("demo"))


def test_no_digit_is_trained_on_and_tested(packed):
    assert packed.splits == ("train", "test")
    trained, tested = packed.split("train"), packed.split("test")
    assert {int(name[0]) for name in trained.class_names} == set(BASE)
    assert len(trained.class_names) == TURNS * len(BASE)
    assert [int(name) for name in tested.class_names] == list(NOVEL)
    assert len(trained.labels) / TURNS + len(tested.labels) == len(load_digits().target)


def test_base_digits_are_turned(packed):
    trained = packed.split("train")
    names = np.array(trained.class_names)[trained.labels]
    upright = trained.images[names == "3 turned 0"].astype(float)
    turned = trained.images[names == "3 turned 90"].astype(float)
    again = np.rot90(upright, axes=(1, 2))  # enlarging rounds rows and columns one after the other
    np.testing.assert_allclose(again, turned, atol=32)


def test_features_pictures_and_labels_have_the_same_order(learned):
    digits = load_digits()
    rows = np.concatenate([np.flatnonzero(digits.target == digit) for digit in NOVEL])
    np.testing.assert_array_equal(learned.labels, digits.target[rows].astype(str))
    assert len(learned.features) == len(learned.pictures) == len(rows)
    middle = ((np.arange(8) + 0.5) * SIZE / 8).astype(int)  # of each enlarged gray value
    seen = learned.pictures[:, middle][:, :, middle].astype(float)
    alike = [
        np.corrcoef(a.ravel(), b.ravel())[0, 1]
        for a, b in zip(seen, digits.images[rows], strict=True)
    ]
    assert min(alike) > 0.95


def test_every_epoch_is_logged(plan, learned):
    assert len(learned.losses) == len(learned.accuracies) == plan.recipe.epochs
    assert min(learned.losses) > 0
    assert all(0 <= accuracy <= 100 for accuracy in learned.accuracies)


def test_the_plan_uses_its_seed_everywhere_and_rejects_invalid_numbers():
    plan = Plan.of(2, 3, seed=5)
    assert (plan.seed, plan.recipe.seed, plan.recipe.epochs, len(plan.episodes)) == (5, 5, 3, 2)
    assert plan.recipe.rates[-1] == (3, 0)
    for wrong in ({"episodes": 0}, {"epochs": 0}, {"seed": -1}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            Plan.of(**{"episodes": 2, "epochs": 3} | wrong)


def test_every_method_is_evaluated_on_the_same_episodes(plan, result):
    order = [(name, shot) for shot in SHOTS for name in PAPER]
    assert list(result.by_network) == list(result.by_pixels) == order
    curves = [one for results in result.over_z.values() for one in results]
    every = [*result.by_network.values(), *result.by_pixels.values(), *curves]
    assert {(one.way, one.query, one.episodes) for one in every} == {(5, 15, len(plan.episodes))}


def test_pixels_are_compared_on_the_same_episodes(plan, learned, result):
    pixels = learned.pictures.reshape(len(learned.labels), -1).astype(np.float32)
    again = evaluate(pixels, learned.labels, "bd-c", shot=5, episodes=plan.episodes)[0]
    np.testing.assert_array_equal(result.by_pixels["bd-c", 5].per_episode, again.per_episode)
    features = evaluate(learned.features, learned.labels, "bd-c", shot=5, episodes=plan.episodes)
    np.testing.assert_array_equal(result.by_network["bd-c", 5].per_episode, features[0].per_episode)


def test_curves_start_at_cspn_and_pass_through_bd_i(result):
    for shot in SHOTS:
        for weighting in ("samples", "classes"):
            start = result.over_z[weighting, shot][0]
            np.testing.assert_array_equal(
                start.per_episode, result.by_network["cspn", shot].per_episode
            )
        default = result.over_z["samples", shot][8]
        np.testing.assert_array_equal(
            default.per_episode, result.by_network["bd-i", shot].per_episode
        )


def test_another_seed_samples_other_episodes(plan):
    other = Plan.of(len(plan.episodes), 2, seed=4)
    assert other.episodes.query.tolist() != plan.episodes.query.tolist()


def test_progress_is_reported(plan, learned):
    calls = []
    measure(plan, learned, lambda done, total: calls.append((done, total)))
    total = 2 * len(plan.episodes) * len(SHOTS)  # on pixels and on features
    assert calls[-1] == (total, total)
    assert calls == sorted(calls)
    assert {of for _, of in calls} == {total}
