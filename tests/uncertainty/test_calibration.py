"""Held-out examples and the unlabeled samples calibrate the probabilities."""

import numpy as np
import pytest
import torch

from helpers.tasks import task
from protorect.methods import METHODS
from protorect.uncertainty import calibration, held_out
from protorect.uncertainty.calibrated import fit_calibrated
from protorect.uncertainty.calibration import (
    calibrated_temperature,
    fit_temperature,
    label_weights,
)
from protorect.uncertainty.held_out import HeldOut, hold_out
from protorect.uncertainty.ood import centered_rows
from reference import calibration as reference


def random_scores(n=200, ways=4, scale=2.5, seed=0):
    """Scores, and labels that are drawn from softmax(scale x scores)."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, ways))
    powers = np.exp(scale * scores)
    labels = np.array([rng.choice(ways, p=row / row.sum()) for row in powers])
    return HeldOut(torch.from_numpy(scores), torch.from_numpy(labels))


@pytest.mark.parametrize("n", [5, 200])
@pytest.mark.parametrize("expected", [0.1, 1.0])
def test_the_temperature_equals_that_of_the_slow_reference(n, expected):
    examples = random_scores(n)
    candidates = (2 * calibration.TEMPERATURES).tolist()
    weights = np.random.default_rng(1).uniform(0.2, 2, size=n)
    slow = reference.temperature(*(c.tolist() for c in examples), weights, expected, candidates)
    found = fit_temperature(examples, torch.from_numpy(weights), expected, 2.0)
    assert found == pytest.approx(slow, rel=1e-6)


def test_the_candidates_reach_from_a_thousandth_of_the_lead_to_ten_times_it():
    assert calibration.TEMPERATURES.max() == pytest.approx(10)
    assert calibration.TEMPERATURES.min() == pytest.approx(1e-3)


def test_labels_weigh_as_their_classes_are_predicted():
    labels, predicted = [0, 0, 0, 1, 1, 2, 2], [0] * 5 + [1] * 15
    found = label_weights(torch.tensor(labels), torch.tensor(predicted), 3)
    np.testing.assert_allclose(found, reference.label_weights(labels, predicted, 3), rtol=1e-6)
    assert max(found[0], found[5]) < found[3]


def test_without_predictions_all_classes_weigh_the_same():
    weights = label_weights(torch.tensor([0, 1, 1]), torch.empty(0, dtype=torch.long), 2)
    assert weights.tolist() == pytest.approx([1.5, 0.75, 0.75])


def test_more_similar_samples_have_lower_ood_scores():
    scores = calibration.Calibration(1.0, mean=0.5, deviation=0.1).ood_score
    assert scores(torch.tensor([0.3, 0.5, 0.7])).tolist() == pytest.approx(
        [0.977, 0.5, 0.023], abs=1e-3
    )


@pytest.mark.parametrize(("unlabeled", "weighted"), [(3, False), (4, True), (5, True)])
def test_held_out_examples_have_one_example_less(monkeypatch, unlabeled, weighted):
    """By hand: with three examples per class, of log(examples) alone, and scores of lead 1."""
    started = []

    def fit(held, weights, expected, lead):
        started.append((weights.tolist(), expected / lead))
        return 5.0

    monkeypatch.setattr(calibration, "fit_temperature", fit)
    labels = torch.tensor([0, 1] * 3)
    held = HeldOut(torch.eye(2)[labels], labels)
    scores = torch.tensor([[1.0, 0.0]] * unlabeled)
    task = torch.eye(2)[labels], labels, torch.ones(unlabeled, 2), scores
    found = calibrated_temperature(*task, held, (0.0, 0.0, 0.0, 0.0, 1.0))
    assert found == pytest.approx(5.0 * 2 / 3)
    ((weights, start),) = started
    assert start == pytest.approx(1 / 2)  # 1/3 for three examples, and 3/2 as two remained
    assert (weights[0] > weights[1]) == weighted


def test_mistakes_on_an_absent_class_do_not_make_the_others_doubtful():
    """Half of the classes are absent, and pure noise; the others are distinct."""
    support, labels, unlabeled, truth = map(torch.from_numpy, task(shots=5, each=20, spread=0.8))
    support, present = support.clone(), truth < 3
    noise = torch.Generator().manual_seed(0)
    support[labels >= 3] = support.std() * torch.randn(15, 32, generator=noise)
    rule, scored = fit_calibrated(METHODS["cspn"], support, labels, unlabeled[present])
    top = rule.probabilities(scored.scores).max(dim=-1)
    right = float((top.indices == truth[present]).float().mean())
    assert right > 0.9
    assert float(top.values.mean()) > right - 0.08


def test_many_examples_determine_the_temperature():
    for expected in (0.1, 1.0):
        assert (
            1 / 3.3
            < fit_temperature(random_scores(1000), torch.ones(1000), expected, 1.0)
            < 1 / 1.9
        )


def test_without_a_mistake_the_temperature_is_not_zero():
    labels = torch.arange(40) % 4
    assert fit_temperature(HeldOut(torch.eye(4)[labels], labels), torch.ones(40), 0.2, 1.0) > 0.02


@pytest.mark.parametrize("shots", [1, 3])
def test_the_unlabeled_samples_expect_a_temperature(shots):
    support, labels, unlabeled, _ = map(torch.from_numpy, task(shots=shots, each=10))
    support, unlabeled = support.double(), unlabeled.double()
    chosen = METHODS["bd-cspn-plus"]
    scores = chosen(support[None], labels, unlabeled[None])[0]
    none = HeldOut(scores[:0], labels[:0])
    rows = centered_rows(support, labels, unlabeled)
    scale = reference.expected_scale(scores.numpy(), rows.numpy(), 6, shots)
    lead = (scores.max(dim=1).values - scores.mean(dim=1)).mean()
    found = calibrated_temperature(support, labels, unlabeled, scores, none)
    assert found == pytest.approx(
        float(lead) / scale * np.exp(calibration.LOG_TEMPERATURE_MARGIN), rel=1e-6
    )
    thousandfold = calibrated_temperature(support, labels, unlabeled, 1000 * scores, none)
    assert thousandfold == pytest.approx(1000 * found, rel=1e-6)


@pytest.mark.parametrize("shots", [1, 2, 5])
@pytest.mark.parametrize("spread", [0.8, 2.5, 4.0])
def test_probabilities_are_true_on_average(shots, spread):
    """Distinct classes and classes that can hardly be told apart, with any number of labels."""
    stated, right = [], []
    for seed in range(4):
        support, labels, unlabeled, truth = map(
            torch.from_numpy, task(ways=5, shots=shots, each=15, spread=spread, seed=seed)
        )
        rule, scored = fit_calibrated(METHODS["bd-cspn-plus"], support, labels, unlabeled)
        top = rule.probabilities(scored.scores).max(dim=-1)
        stated.append(float(top.values.mean()))
        right.append(float((top.indices == truth).float().mean()))
    assert np.mean(stated) < np.mean(right) + 0.12
    assert np.mean(stated) > np.mean(right) - 0.25


@pytest.mark.parametrize("shots", [2, 5, 40])
def test_every_example_is_held_out_once(shots):
    support, labels, unlabeled, _ = map(torch.from_numpy, task(shots=shots, spread=1.0))
    method, tasks = METHODS["bd-cspn-classes"], []

    class Counted:
        has_rule = True

        def __call__(self, examples, known, query):
            tasks.append((examples, known, query))
            return method(examples, known, query)

    found = hold_out(Counted(), support, labels, unlabeled)
    assert len(tasks) <= 2 * held_out.TASKS
    assert found.scores.shape == (6 * shots, 6)
    assert sorted(found.labels.tolist()) == sorted(labels.tolist())
    assert (found.scores.argmax(dim=1) == found.labels).float().mean() > 0.85
    for examples, known, query in tasks:
        # A sample is either an example or one of the unlabeled ones, and every class has examples.
        assert len(examples[0]) + len(query[0]) == len(support) + len(unlabeled)
        assert not (query[0][:, None] == examples[0]).all(dim=2).any()
        assert len(set(known.tolist())) == 6
        assert len(set(known.bincount().tolist())) == 1  # no class has an advantage


def test_the_only_example_of_a_class_is_not_held_out():
    support, labels, unlabeled, _ = map(torch.from_numpy, task(shots=2))
    some = torch.tensor([0, 2, 4, 5, 6, 7, 8, 9, 10, 11])  # one of the first two classes
    found = hold_out(METHODS["cspn"], support[some], labels[some], unlabeled)
    assert sorted(found.labels.tolist()) == [2, 2, 3, 3, 4, 4, 5, 5]
    assert not len(hold_out(METHODS["cspn"], support[::2], labels[::2], unlabeled).labels)


def test_a_held_out_example_is_not_in_its_prototype():
    """Examples of pure noise: each would be recognized by a prototype that includes it."""
    rng = np.random.default_rng(0)
    support = torch.from_numpy(rng.normal(size=(40, 256)).astype(np.float32))
    labels = torch.arange(40) % 20
    unlabeled = torch.from_numpy(rng.normal(size=(200, 256)).astype(np.float32))
    found = hold_out(METHODS["cspn"], support, labels, unlabeled)
    assert (found.scores.argmax(dim=1) == found.labels).float().mean() < 0.2
