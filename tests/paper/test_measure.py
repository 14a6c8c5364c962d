"""Accuracies by the paper's protocol, compared with `evaluate`."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.paper import write_pictures
from protorect import OptionError, evaluate, sample_episodes
from protorect.evaluation.fine_tuned import evaluate_fine_tuned
from protorect.methods import PICTURE_METHODS
from protorect.paper import measure
from protorect.paper.feature_sets import FeatureSet
from protorect.paper.measure import Job, Known, Setting, accuracy, fine_tuning


def test_accuracies_are_those_of_evaluate_with_the_chosen_z(job):
    job = replace(job, seed=3)
    numbers, _ = accuracy(job)
    assert [(one.method, one.shot) for one in numbers] == [
        (m, k) for m in job.methods for k in (1, 5)
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


def test_what_another_experiment_measured_is_not_measured_again(job, monkeypatch):
    job = replace(job, known=Known())
    first, _ = accuracy(job)
    monkeypatch.setattr(measure, "evaluate_chosen", None)
    monkeypatch.setattr(measure, "choose_z", None)
    assert accuracy(replace(job, methods=["bd-cspn"]))[0] == first[2:]
    with pytest.raises(TypeError):
        accuracy(replace(job, methods=["bd-cspn", "bd-i"]))


def test_z_is_chosen_with_at_most_the_ways_of_the_validation_classes(job):
    many = replace(job.settings[0], way=300)
    assert replace(job, methods=["bd-i"]).choose_z(many)  # of 12 classes


def test_too_few_classes_name_the_file(job):
    many = replace(job.settings[0], way=300)
    with pytest.raises(OptionError, match=r"conv64-test.npz: an episode needs 300 classes"):
        accuracy(replace(job, settings=[many]))


OMNIGLOT = FeatureSet("omniglot", "conv64")


@pytest.fixture(scope="module")
def fine_tuning_job(tmp_path_factory):
    """The first two of four episodes are fine-tuned."""
    folder = write_pictures(tmp_path_factory.mktemp("paper"))
    settings = [Setting(OMNIGLOT, episodes=4)]
    return Job(*folder.load(OMNIGLOT), folder, ("cspn", "tft-head", "tft"), settings, fine_tuned=2)


@pytest.fixture
def one_step(monkeypatch):
    """Fine-tune with one step instead of twenty-five."""
    chosen = PICTURE_METHODS["tft"]
    quick = replace(chosen, options=replace(chosen.options, iterations=1))
    monkeypatch.setitem(PICTURE_METHODS, "tft", quick)
    return quick


def test_whole_networks_are_fine_tuned_on_the_first_episodes(fine_tuning_job, one_step):
    numbers, differences = fine_tuning(fine_tuning_job)
    measured = {(one.method, one.shot): one for one in numbers}
    assert {method for method, _ in measured} == set(fine_tuning_job.methods)
    assert (measured["tft", 1].episodes, measured["tft-head", 1].episodes) == (2, 4)
    test, pictures = fine_tuning_job.test, fine_tuning_job.folder.pictures(OMNIGLOT)
    episodes = sample_episodes(test.labels, shot=5, episodes=4)
    first = episodes.first(2)
    expected = evaluate_fine_tuned(pictures, [one_step], shot=[1, 5], episodes=first)
    cspn = evaluate(test.features, test.labels, "cspn", shot=[1, 5], episodes=first)
    assert differences["tft"]["episodes"] == 2
    for tft, plain in zip(expected, cspn, strict=True):
        assert measured["tft", tft.shot].value == tft.accuracy
        assert differences["tft"][str(tft.shot)] == tft.minus(plain)._asdict()
    head = evaluate(test.features, test.labels, "tft-head", shot=1, episodes=episodes)[0]
    assert measured["tft-head", 1].value == head.accuracy


@pytest.mark.parametrize("without", ["runs", "data"])
def test_without_run_or_pictures_the_head_alone_is_measured(fine_tuning_job, tmp_path, without):
    folder = replace(fine_tuning_job.folder, **{without: tmp_path})
    numbers, differences = fine_tuning(replace(fine_tuning_job, folder=folder))
    assert {one.method for one in numbers} == {"cspn", "tft-head"}
    assert differences == {}


def test_support_and_queries_share_no_group(job):
    rows = np.arange(len(job.test.labels))
    groups = np.where(rows % 20 < 5, rows // 20, 1000 + rows)  # five of the 20 rows of a class
    grouped = replace(job, test=replace(job.test, groups=groups))
    episodes = grouped.sample_episodes(grouped.settings[0])
    for support, query in zip(episodes.support, episodes.query, strict=True):
        assert not set(groups[support.ravel()]) & set(groups[query])
