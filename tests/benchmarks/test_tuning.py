"""The study of options runs, and the defaults are those it chose."""

import numpy as np
from benchmarks.documents import load_results
from benchmarks.tuning import best_propagation, measure

from helpers.clusters import clusters
from protorect import METHODS


def test_the_defaults_of_label_propagation_are_those_chosen_on_validation_classes():
    options = METHODS["label-propagation"].options
    chosen = best_propagation(load_results("tuning")["sets"])
    assert (options.graph, options.alpha, options.sigma) == chosen


def test_every_value_is_measured_in_both_settings_at_both_shots(tmp_path):
    features, labels = clusters(classes=8, each=60)
    np.savez(tmp_path / "f.npz", features=features, labels=labels)
    measured = measure(tmp_path / "f.npz", tmp_path / "f.npz", episodes=2)
    assert {"cspn", "laplacian-shot:base_mean=given", "ridge:penalty=1.0"} <= set(measured)
    assert all(len(accuracies) == 4 for accuracies in measured.values())
