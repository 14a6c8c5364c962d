"""`FewShotClassifier`: scikit-learn's checks, every method, probabilities, files."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.clusters import clusters
from protorect import BDCSPN, METHODS, DataError, FewShotClassifier, OptionError
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.core.functional import predictions
from protorect.estimators.known_samples import KnownSamples

# Fewer iterations where only the contract is tested.
QUICK = {"tim": "tim:iterations=5", "alpha-tim": "alpha-tim:iterations=5"}
SPECS = [QUICK.get(name, name) for name in METHODS]

CHECKS = """
from sklearn.utils.estimator_checks import check_estimator
from protorect import FewShotClassifier

class WithUnlabeled(FewShotClassifier):
    def fit(self, X, y):
        return super().fit(X, y, X_unlabeled=X)

for estimator in (FewShotClassifier(), WithUnlabeled("bd-cspn", calibrate=False)):
    ran = check_estimator(estimator, on_skip=None, on_fail="raise")
    assert len(ran) > 50 and all(check["status"] == "passed" for check in ran)
"""


def task(ways=4, shot=3, unlabeled=20, seed=0, dtype=np.float64):
    """Labeled, unlabeled and new features of the classes "class 0", "class 1", ..."""
    features, labels = clusters(ways, shot + unlabeled + 5, seed=seed, dtype=dtype)
    names = np.array([f"class {label}" for label in labels])
    rank = np.tile(np.arange(shot + unlabeled + 5), ways)
    support, new = rank < shot, rank >= shot + unlabeled
    return features[support], names[support], features[~support & ~new], features[new]


def test_all_checks_of_scikit_learn_run_and_pass():
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHECKS],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("spec", SPECS)
def test_labels_are_those_of_the_method(spec):
    X, y, unlabeled, new = task()
    classifier = FewShotClassifier(spec).fit(X, y, X_unlabeled=unlabeled)
    codes = torch.from_numpy(np.unique(y, return_inverse=True)[1])
    tensors = torch.from_numpy(X)[None], codes, torch.from_numpy(unlabeled)[None]
    fitted = METHODS[spec.partition(":")[0]].with_options(**options(spec)).fit(*tensors)
    expected = classifier.classes_[predictions(fitted.unlabeled_scores)[0].numpy()]
    np.testing.assert_array_equal(classifier.transduction_, expected)
    # Methods without a rule of their own have scores of another scale for new samples.
    scores = classifier.rule_.score_scale * fitted.scores(torch.from_numpy(new)[None])[0]
    np.testing.assert_allclose(classifier.decision_function(new), scores, rtol=1e-5, atol=1e-7)


def options(spec):
    return {"iterations": 5} if ":" in spec else {}


@pytest.mark.parametrize("spec", ["bd-cspn-plus", "label-propagation", "pt-map"])
def test_unlabeled_samples_keep_their_labels_in_any_selection(spec):
    X, y, unlabeled, new = task(seed=3)
    classifier = FewShotClassifier(spec).fit(X, y, X_unlabeled=unlabeled)
    np.testing.assert_array_equal(classifier.predict(unlabeled), classifier.transduction_)
    some = np.array([7, 3, 3, 40])
    np.testing.assert_array_equal(
        classifier.predict(unlabeled[some]), classifier.transduction_[some]
    )
    mixed = classifier.predict_proba(np.concatenate([new, unlabeled[some]]))
    np.testing.assert_allclose(mixed[: len(new)], classifier.predict_proba(new), rtol=1e-6)
    np.testing.assert_array_equal(mixed[len(new) :], classifier.predict_proba(unlabeled[some]))


def test_without_unlabeled_samples_the_support_decides():
    X, y, _, new = task()
    classifier = FewShotClassifier().fit(X, y)
    assert len(classifier.transduction_) == 0
    assert (classifier.predict(X) == y).all()
    assert classifier.predict(new).shape == (len(new),)
    assert ((classifier.ood_score(new) >= 0) & (classifier.ood_score(new) <= 1)).all()


def test_probabilities_sum_to_one_and_calibration_changes_them():
    X, y, unlabeled, new = task(shot=5)
    calibrated = FewShotClassifier("cspn").fit(X, y, X_unlabeled=unlabeled)
    plain = FewShotClassifier("cspn", calibrate=False).fit(X, y, X_unlabeled=unlabeled)
    for classifier in (calibrated, plain):
        p = classifier.predict_proba(new)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        labels = classifier.classes_[p.argmax(axis=1)]
        np.testing.assert_array_equal(labels, classifier.predict(new))
    cosines = plain.decision_function(new)
    expected = np.exp(10 * cosines) / np.exp(10 * cosines).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(plain.predict_proba(new), expected, rtol=1e-6)
    assert not np.allclose(calibrated.predict_proba(new), plain.predict_proba(new))


def test_other_samples_are_more_out_of_distribution():
    X, y, unlabeled, new = task(shot=5)
    other = np.random.default_rng(1).normal(size=new.shape)
    classifier = FewShotClassifier().fit(X, y, X_unlabeled=unlabeled)
    assert np.median(classifier.ood_score(other)) > 0.9 > np.median(classifier.ood_score(new))


@pytest.mark.parametrize("spec", SPECS)
def test_copies_and_files_predict_the_same(spec, tmp_path):
    X, y, unlabeled, new = task()
    original = FewShotClassifier(spec).fit(X, y, X_unlabeled=unlabeled)
    original.save(tmp_path / "clf.safetensors")
    loaded = FewShotClassifier.load(tmp_path / "clf.safetensors")
    assert loaded.get_params() == original.get_params()
    for other in (loaded, pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):
        for X_ in (new, unlabeled):
            np.testing.assert_array_equal(other.predict_proba(X_), original.predict_proba(X_))
            np.testing.assert_array_equal(other.ood_score(X_), original.ood_score(X_))
        np.testing.assert_array_equal(other.transduction_, original.transduction_)


@pytest.mark.parametrize(
    "damage",
    [
        lambda tensors, config: tensors.pop("known.hashes"),
        lambda tensors, config: tensors.update({"known.order": torch.zeros(80, dtype=torch.int64)}),
        lambda tensors, config: tensors.update({"known.scores": torch.zeros(3, 4)}),
        lambda tensors, config: tensors.update({"similarity.neighbors": torch.zeros(1, 2, 2)}),
        lambda tensors, config: config["rule"].update({"class": "Nonsense"}),
        lambda tensors, config: config.update({"calibration": {"temperature": "hot"}}),
        lambda tensors, config: config["classes"].pop(),
        lambda tensors, config: config.update({"similarity": config["rule"]}),
        lambda tensors, config: config.update({"cosine_rule": {}}),  # of an earlier version
    ],
)
def test_a_damaged_file_is_refused(tmp_path, damage):
    X, y, unlabeled, _ = task()
    path = tmp_path / "clf.safetensors"
    FewShotClassifier().fit(X, y, X_unlabeled=unlabeled).save(path)
    tensors, config = load_tensors(path)
    damage(tensors, config)
    save_tensors(path, tensors, config)
    with pytest.raises(DataError, match="holds a damaged FewShotClassifier"):
        FewShotClassifier.load(path)


def test_a_file_of_another_class_is_refused(tmp_path):
    X, y, unlabeled, _ = task()
    BDCSPN().fit(X, y, X_unlabeled=unlabeled).save(tmp_path / "clf.safetensors")
    with pytest.raises(DataError, match=r"holds a BDCSPN, not a FewShotClassifier; .* BDCSPN.load"):
        FewShotClassifier.load(tmp_path / "clf.safetensors")


def test_numpy_torch_and_pandas_give_the_same_labels():
    X, y, unlabeled, new = task(dtype=np.float32)
    expected = FewShotClassifier().fit(X, y, X_unlabeled=unlabeled).predict_proba(new)
    for convert in (torch.from_numpy, pd.DataFrame, lambda X: X.tolist()):
        classifier = FewShotClassifier().fit(convert(X), y, X_unlabeled=convert(unlabeled))
        np.testing.assert_allclose(classifier.predict_proba(convert(new)), expected, atol=1e-5)


def test_grid_search_pipeline_and_clone():
    X, y, unlabeled, new = task(shot=6)
    search = GridSearchCV(FewShotClassifier(), {"method": ["cspn", "bd-cspn:z=2"]}, cv=2)
    search.fit(X, y, X_unlabeled=unlabeled)
    assert search.best_params_["method"] in ("cspn", "bd-cspn:z=2")
    pipeline = make_pipeline(StandardScaler(), clone(search.best_estimator_)).fit(X, y)
    assert pipeline.predict(new).shape == (len(new),)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "bd-cspm"}, "unknown method 'bd-cspm'. Did you mean 'bd-cspn'"),
        ({"method": "bd-cspn:y=3"}, "unknown option of bd-cspn 'y'"),
        ({"method": "tft"}, "fine-tunes the network on pictures"),
        ({"method": 3}, "3 is no method"),
        ({"calibrate": "yes"}, "calibrate is 'yes'; it must be true or false"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(parameters, message):
    X, y, _, _ = task()
    with pytest.raises(OptionError, match=message):
        FewShotClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "unlabeled", "message"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], ["a", "a"], None, "y has one class only"),
        ([[1.0, 2.0], [3.0, np.nan]], ["a", "b"], None, "contains NaN"),
        ([[1.0, 2.0], [3.0, 4.0]], ["a", "b"], [[1.0]], "X_unlabeled: X has 1 features"),
        ([[1.0, 2.0], [3.0, 4.0]], ["a", "b"], [[np.inf, 1.0]], "X_unlabeled: .* infinity"),
        ([[1.0, 2.0], [3.0, 4.0]], ["a"], None, "inconsistent numbers of samples"),
        ([[1.0, 2.0], [3.0, 4.0]], [["a"], ["b"]], None, "not hashable|1d array"),
    ],
)
def test_bad_features_and_labels_are_refused(X, y, unlabeled, message):
    with pytest.raises(ValueError, match=message):
        FewShotClassifier().fit(X, y, X_unlabeled=unlabeled)


def test_labels_of_mixed_types_keep_their_order():
    X, _, unlabeled, _ = task(ways=3, shot=1)
    classifier = FewShotClassifier("bd-cspn").fit(X, ["b", 1, ("a", 2)], X_unlabeled=unlabeled)
    assert classifier.classes_.tolist() == ["b", 1, ("a", 2)]


def test_an_unfitted_classifier_says_so(tmp_path):
    for use in (FewShotClassifier().predict, FewShotClassifier().ood_score):
        with pytest.raises(NotFittedError):
            use([[1.0, 2.0]])
    with pytest.raises(NotFittedError):
        FewShotClassifier().save(tmp_path / "clf.safetensors")


@pytest.mark.parametrize("fitted", [np.float32, np.float64])
@pytest.mark.parametrize("given", [np.float16, np.float32, np.float64])
def test_samples_may_have_another_type_than_those_of_the_fit(fitted, given):
    X, y, unlabeled, new = task()
    classifier = FewShotClassifier().fit(X, y, X_unlabeled=unlabeled.astype(fitted))
    p, ood = classifier.predict_proba(new), classifier.ood_score(new)
    np.testing.assert_allclose(classifier.predict_proba(new.astype(given)), p, atol=2e-2)
    np.testing.assert_allclose(classifier.ood_score(new.astype(given)), ood, atol=2e-2)


@pytest.mark.parametrize("scale", [1e60, 1e-50, 1.0])
def test_samples_are_recognized_at_any_scale(scale):
    X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), [0, 1]
    unlabeled = scale * np.array([[1.0, 0.0], [-0.0, 1.0], [1.0, 0.1], [0.1, 1.0]])
    classifier = FewShotClassifier("cspn").fit(X, y, X_unlabeled=unlabeled)
    assert classifier.transduction_.tolist() == [0, 1, 0, 1]
    assert classifier.predict(scale * np.array([[3.0, 1.0], [1.0, 3.0]])).tolist() == [0, 1]


def test_many_similar_samples_are_not_confused():
    rng = np.random.default_rng(0)
    known = np.unique(np.sign(rng.normal(size=(60_000, 32))), axis=0)
    codes = rng.permutation(len(known))
    half = len(known) // 2
    samples = KnownSamples.of(known[codes[:half]], torch.zeros(half, 2))
    assert samples.find(known[codes[half:]])[1].all()
    assert not samples.find(known[codes[:half]].astype(np.float32))[1].any()


def test_equal_unlabeled_samples_have_one_answer_also_after_loading(tmp_path):
    support, labels = clusters(4, 1, 16, 2.0, 0)
    samples, _ = clusters(4, 12, 16, 2.0, 1)
    twice = np.repeat(samples, 2, axis=0)[np.random.default_rng(0).permutation(2 * len(samples))]
    classifier = FewShotClassifier("label-propagation", calibrate=False)
    classifier.fit(support, labels, X_unlabeled=twice)
    classifier.save(tmp_path / "c.safetensors")
    loaded = FewShotClassifier.load(tmp_path / "c.safetensors")
    np.testing.assert_array_equal(loaded.transduction_, classifier.transduction_)
    np.testing.assert_array_equal(loaded.predict(twice), loaded.transduction_)


def test_a_method_with_options_of_numpy_is_saved(tmp_path):
    support, labels = clusters(3, 2, 8, 1.0, 0)
    chosen = METHODS["bd-cspn"].with_options(z=np.int64(4), epsilon=np.float32(5), shift=np.False_)
    assert chosen.name == "bd-cspn:z=4,epsilon=5.0,shift=false"
    classifier = FewShotClassifier(chosen).fit(support, labels)
    classifier.save(tmp_path / "c.safetensors")
    assert FewShotClassifier.load(tmp_path / "c.safetensors").method == chosen.name


def test_a_method_object_is_saved_by_its_name(tmp_path):
    X, y, unlabeled, new = task()
    chosen = METHODS["bd-cspn"].with_options(z=4).with_options(z=3)
    original = FewShotClassifier(chosen).fit(X, y, X_unlabeled=unlabeled)
    original.save(tmp_path / "clf.safetensors")
    loaded = FewShotClassifier.load(tmp_path / "clf.safetensors")
    assert loaded.method == "bd-cspn:z=3"
    np.testing.assert_array_equal(loaded.predict_proba(new), original.predict_proba(new))
    centered = METHODS["simpleshot"].with_options(base_mean=X.mean(axis=0))
    with pytest.raises(DataError, match="cannot save the method simpleshot:.*set it in Python"):
        FewShotClassifier(centered).fit(X, y).save(tmp_path / "other.safetensors")


@pytest.mark.filterwarnings("error")
def test_one_example_of_many_classes_gives_no_warning():
    X = np.random.default_rng(0).normal(size=(60, 8))
    FewShotClassifier("cspn").fit(X, np.arange(60))
