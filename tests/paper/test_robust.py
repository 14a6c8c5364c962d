"""The robust test, compared with `evaluate` and with a slow mean average precision."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from protorect import evaluate
from protorect.paper.robust import mean_average_precision, robustness


def test_accuracy_is_that_of_evaluate_with_distractors(job):
    settings = [replace(job.settings[0], distractors=n) for n in (0, 2)]
    numbers, _ = robustness(replace(job, settings=settings))
    assert len(numbers) == 2 * 2 * 2 * 2  # settings, shots, methods, quantities
    for one in numbers:
        if one.quantity == "accuracy":
            spelled = one.method if one.z is None else f"{one.method}:z={one.z}"
            results = evaluate(
                job.test.features, job.test.labels, spelled, shot=[1, 5], episodes=20,
                distractors=one.distractors,
            )  # fmt: skip
            result = next(r for r in results if r.shot == one.shot)
            assert one.value == pytest.approx(result.accuracy, abs=1e-4)


def slow_mean_average_precision(scores, truth, top):
    """One task: rank the `top` most confident queries predicted as each class."""
    probabilities = torch.softmax(10 * scores, dim=-1)
    predicted = scores.argmax(dim=-1)
    precisions = []
    for way in range(scores.shape[-1]):
        own = [q for q in range(len(scores)) if predicted[q] == way]
        ranked = sorted(own, key=lambda q: -float(probabilities[q, way]))[:top]
        correct = [int(truth[q]) == way for q in ranked]
        confidence = [float(probabilities[q, way]) for q in ranked]
        precisions.append(average_precision_score(correct, confidence) if any(correct) else 0.0)
    return np.mean(precisions)


def test_mean_average_precision_ranks_fifteen_queries_of_each_class():
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.uniform(-1, 1, size=(3, 90, 4)))  # about 22 of each class
    truth = torch.from_numpy(rng.integers(-1, 4, size=(3, 90)))
    expected = [slow_mean_average_precision(scores[i], truth[i], top=15) for i in range(3)]
    assert mean_average_precision(scores, truth).tolist() == pytest.approx(expected)


def test_mean_average_precision_of_perfect_and_of_wrong_rankings():
    truth = torch.tensor([[0, 0, 1, 1]])
    scores = torch.nn.functional.one_hot(truth, 2).double()
    assert mean_average_precision(scores, truth).tolist() == [1.0]
    assert mean_average_precision(1 - scores, truth).tolist() == [0.0]
