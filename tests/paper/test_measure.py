"""Accuracies by the paper's protocol, compared with `evaluate`."""

from dataclasses import replace

import pytest

from protorect import OptionError, evaluate, sample_episodes
from protorect.paper.measure import accuracy


def test_accuracies_are_those_of_evaluate_with_the_chosen_z(job):
    job = replace(job, seed=3)
    numbers = accuracy(job).numbers
    assert [(one.method, one.shot) for one in numbers] == [
        (m, k) for k in (1, 5) for m in job.methods
    ]
    choices = {(c.method, c.shot): c for c in job.choose_z(job.settings[0])}
    episodes = sample_episodes(job.test.labels, shot=5, episodes=20, seed=3)
    for one in numbers:
        spelled = one.method if one.z is None else f"{one.method}:z={one.z}"
        (result,) = evaluate(
            job.test.features, job.test.labels, spelled, shot=one.shot, episodes=episodes
        )
        assert (one.value, one.ci95) == (result.accuracy, result.ci95)
        assert (one.z is not None) == ((one.method, one.shot) in choices)
        assert (one.way, one.query, one.episodes, one.distractors) == (5, 15, 20, 0)


def test_z_is_chosen_with_at_most_the_ways_of_the_validation_classes(job):
    many = replace(job.settings[0], way=300)
    assert replace(job, methods=["bd-i"]).choose_z(many)  # of 12 classes


def test_too_few_classes_name_the_file(job):
    many = replace(job.settings[0], way=300)
    with pytest.raises(OptionError, match=r"conv64-test.npz: an episode needs 300 classes"):
        accuracy(replace(job, settings=[many]))
