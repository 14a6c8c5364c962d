"""The scikit-learn classifiers: scikit-learn's own checks, the method, inputs, labels, files."""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.clusters import clusters
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.errors import DataError, OptionError
from protorect.estimators.bd_cspn import BDCSPN, CSPN
from reference.rectification import rectify_episode

CHOICES = [
    {},
    {"weighting": "classes"},
    {"rectify": False},
    {"z": 0},
    {"z": None},
    {"shift": False},
    {"rank": "softmax", "assignment": "overlapping", "scale": 3.0, "epsilon": 2.0},
]
BOTH = [CSPN(), *(BDCSPN(**choice) for choice in CHOICES)]


def episode(ways=5, shot=2, dtype=np.float64, seed=0, spread=1.0):
    """Support features, their labels 0 .. ways - 1, and 60 unlabeled features of each class."""
    features, labels = clusters(ways, shot + 60, spread=spread, seed=seed, dtype=dtype)
    rank = np.tile(np.arange(shot + 60), ways)
    # Queries with another mean, so that there is something to shift.
    return features[rank < shot], labels[rank < shot], features[rank >= shot] + dtype(0.3)


def same(first, second):
    """Equal to the last bit, and of the same type."""
    assert first.dtype == second.dtype
    np.testing.assert_array_equal(first, second)


# --- scikit-learn's checks -----------------------------------------------------------------------

# In a process of its own, because only SCIPY_ARRAY_API=1, set before scipy is imported, lets all
# checks run. They never pass X_unlabeled, so they are run once more with X in its place.
CHECKS = """
from sklearn.utils.estimator_checks import check_estimator
from protorect.estimators.bd_cspn import BDCSPN, CSPN

class WithUnlabeled(BDCSPN):
    def fit(self, X, y):
        return super().fit(X, y, X_unlabeled=X)

kinds = (BDCSPN, WithUnlabeled)
for estimator in [CSPN(), *(kind(**choice) for choice in {choices} for kind in kinds)]:
    ran = check_estimator(estimator, on_skip=None, on_fail="raise")
    assert len(ran) > 50 and all(check["status"] == "passed" for check in ran)
"""


def test_all_checks_of_scikit_learn_run_and_pass():
    code = CHECKS.format(choices=CHOICES)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


def test_the_constructor_only_stores_its_arguments():
    wrong = {"z": -3, "weighting": "nonsense", "rectify": None}
    assert vars(BDCSPN(**wrong)) == {**BDCSPN().get_params(), **wrong}
    assert BDCSPN().get_params() == {
        "z": 8,
        "epsilon": 10.0,
        "weighting": "samples",
        "shift": True,
        "rectify": True,
        "rank": "cosine",
        "assignment": "predicted",
        "scale": 10.0,
    }
    assert CSPN().get_params() == {"scale": 10.0}


@pytest.mark.parametrize(
    ("option", "value"),
    [("z", -1), ("epsilon", -1.0), ("scale", np.inf), ("weighting", "sample"), ("rank", "cos")],
)
def test_a_wrong_option_is_refused_by_fit(option, value):
    X, y, unlabeled = episode()
    for rectify in (True, False):
        with pytest.raises(OptionError, match=option):
            BDCSPN(**{option: value, "rectify": rectify}).fit(X, y, X_unlabeled=unlabeled)
        with pytest.raises(OptionError, match=option):
            BDCSPN(**{option: value, "rectify": rectify}).fit(X, y)


def test_a_failed_fit_leaves_it_unfitted():
    X, y, unlabeled = episode()
    classifier = BDCSPN()
    with pytest.raises(DataError):
        classifier.fit(X, y, X_unlabeled=unlabeled[:, 1:])
    with pytest.raises(NotFittedError):
        classifier.predict(X)


def test_grid_search_over_the_parameters():
    X, y, unlabeled = episode(shot=6, spread=2.0)
    grid = {"z": [0, 4, None], "weighting": ["samples", "classes"], "shift": [True, False]}
    search = GridSearchCV(BDCSPN(), grid, cv=3, error_score="raise")
    search.fit(X, y, X_unlabeled=unlabeled)
    same(search.predict(unlabeled), search.best_estimator_.transduction_)
    # The folds were given X_unlabeled: without it, all these parameters give the same.
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_in_a_pipeline_with_and_without_unlabeled_features():
    X, y, unlabeled = episode()
    pipeline = make_pipeline(StandardScaler(), PCA(5), BDCSPN()).fit(X, y)
    assert pipeline.score(unlabeled, np.repeat(np.arange(5), 60)) > 0.5
    with config_context(enable_metadata_routing=True):
        last = BDCSPN().set_fit_request(X_unlabeled=True)
        steps = [("scale", StandardScaler()), ("classify", last)]
        pipeline = Pipeline(steps, transform_input=["X_unlabeled"]).fit(X, y, X_unlabeled=unlabeled)
    scaler = StandardScaler().fit(X)
    direct = BDCSPN().fit(scaler.transform(X), y, X_unlabeled=scaler.transform(unlabeled))
    same(pipeline["classify"].prototypes_, direct.prototypes_)


# --- the method ----------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("ways", [2, 5])
def test_bdcspn_agrees_with_the_reference(choice, ways):
    X, y, unlabeled = episode(ways)
    options = {("move" if name == "shift" else name): value for name, value in choice.items()}
    expected = rectify_episode(X, y, unlabeled, ways, **options)
    classifier = BDCSPN(**choice).fit(X, y, X_unlabeled=unlabeled)
    np.testing.assert_allclose(classifier.prototypes_, expected.prototypes, atol=1e-12)
    np.testing.assert_allclose(classifier.shift_, expected.xi, atol=1e-12)
    np.testing.assert_array_equal(classifier.transduction_, expected.scores.argmax(axis=1))
    exponentials = np.exp(classifier.scale * expected.scores)
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(classifier.predict_proba(unlabeled), probabilities, atol=1e-12)
    scores = expected.scores if ways > 2 else expected.scores[:, 1] - expected.scores[:, 0]
    np.testing.assert_allclose(classifier.decision_function(unlabeled), scores, atol=1e-12)


def test_cspn_labels_the_unlabeled_features_by_basic_prototypes():
    X, y, unlabeled = episode()
    expected = rectify_episode(X, y, unlabeled, 5, move=False, rectify=False)
    classifier = CSPN().fit(X, y, X_unlabeled=unlabeled)
    np.testing.assert_allclose(classifier.prototypes_, expected.basic, atol=1e-12)
    np.testing.assert_array_equal(classifier.transduction_, expected.predicted)
    same(classifier.prototypes_, CSPN().fit(X, y).prototypes_)
    same(classifier.shift_, np.zeros(24))


def test_without_unlabeled_features_it_is_cspn_whatever_was_fitted_before():
    X, y, unlabeled = episode()
    alone = BDCSPN().fit(X, y, X_unlabeled=unlabeled).fit(X, y)
    same(alone.prototypes_, CSPN().fit(X, y).prototypes_)
    same(alone.shift_, np.zeros(24))
    same(alone.transduction_, y[:0])
    same(alone.predict_proba(unlabeled), CSPN().fit(X, y).predict_proba(unlabeled))


def test_new_features_are_shifted_too():
    X, y, unlabeled = episode()
    classifier = BDCSPN().fit(X, y, X_unlabeled=unlabeled)
    new = episode(seed=1)[2]
    shifted = new / np.linalg.norm(new, axis=1, keepdims=True) + classifier.shift_
    assert np.abs(classifier.shift_).max() > 0.05
    cosines = (shifted / np.linalg.norm(shifted, axis=1, keepdims=True)) @ (
        classifier.prototypes_ / np.linalg.norm(classifier.prototypes_, axis=1, keepdims=True)
    ).T
    np.testing.assert_allclose(classifier.decision_function(new), cosines, atol=1e-12)


# --- predict(X_unlabeled) is transduction_ -------------------------------------------------------


def misaligned(array):
    """An equal array at an address that is not a multiple of 64."""
    memory = np.empty(array.nbytes + 68, np.uint8)
    start = (-memory.ctypes.data) % 64 + 4
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[:] = array
    assert copy.ctypes.data % 64 == 4
    return copy


def nearly_tied(n=9000, dim=70):
    """Unlabeled features whose cosines with two classes differ by rounding only."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=dim)
    second = rng.normal(size=dim)
    middle = first / np.linalg.norm(first) + second / np.linalg.norm(second)
    noise = rng.normal(size=(n, dim))
    for direction in np.linalg.qr(np.stack([first, second]).T)[0].T:
        noise -= np.outer(noise @ direction, direction)
    unlabeled = (middle + noise).astype(np.float32)
    return np.stack([first, second]).astype(np.float32), np.array([0, 1]), unlabeled


@pytest.mark.parametrize("classifier", BOTH, ids=str)
def test_predict_of_the_unlabeled_features_is_their_transduction(classifier):
    X, y, unlabeled = nearly_tied()
    classifier = clone(classifier).fit(X, y, X_unlabeled=unlabeled)
    if not classifier.get_params().get("shift", False):
        assert 0.2 < classifier.transduction_.mean() < 0.8  # rounding decides
    for again in (
        unlabeled,
        unlabeled.copy(),
        np.asfortranarray(unlabeled),
        misaligned(unlabeled),
        unlabeled[::-1][::-1],
    ):
        same(classifier.predict(again), classifier.transduction_)
    same(classifier.predict(torch.from_numpy(unlabeled)), classifier.transduction_)
    first = classifier.decision_function(unlabeled)
    same(classifier.decision_function(misaligned(unlabeled)), first)
    same(classifier.decision_function(np.asfortranarray(unlabeled)), first)


def test_the_first_class_wins_a_tie():
    X, y = np.eye(3), ["c", "b", "a"]
    unlabeled = np.ones((5000, 3))
    classifier = BDCSPN(shift=False, z=0).fit(X, y, X_unlabeled=unlabeled)
    assert set(classifier.transduction_) == {"a"}
    assert set(classifier.predict(unlabeled)) == {"a"}


@pytest.mark.parametrize("classifier", BOTH, ids=str)
def test_predictions_do_not_depend_on_earlier_calls(classifier):
    X, y, unlabeled = episode(dtype=np.float32)
    once = clone(classifier).fit(X, y, X_unlabeled=unlabeled)
    twice = (
        clone(classifier).fit(unlabeled[:10], np.arange(10) % 2).fit(X, y, X_unlabeled=unlabeled)
    )
    same(once.prototypes_, twice.prototypes_)
    same(once.shift_, twice.shift_)
    same(once.predict_proba(unlabeled), twice.predict_proba(unlabeled))
    same(once.predict_proba(unlabeled), once.predict_proba(unlabeled))


# --- types of features ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_floating_type_is_preserved(dtype):
    X, y, unlabeled = episode(dtype=dtype)
    classifier = BDCSPN().fit(X, y, X_unlabeled=unlabeled)
    assert classifier.prototypes_.dtype == classifier.shift_.dtype == dtype
    assert classifier.predict_proba(unlabeled).dtype == dtype
    assert classifier.decision_function(unlabeled).dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_computed_in_float32(dtype):
    X, y, unlabeled = episode(dtype=np.float32)
    X, unlabeled = torch.from_numpy(X).to(dtype), torch.from_numpy(unlabeled).to(dtype)
    halves = BDCSPN().fit(X, y, X_unlabeled=unlabeled)
    singles = BDCSPN().fit(X.float(), y, X_unlabeled=unlabeled.float())
    same(halves.prototypes_, singles.prototypes_)
    same(halves.predict_proba(unlabeled), singles.predict_proba(unlabeled.float()))
    if dtype == torch.float16:
        same(BDCSPN().fit(X.numpy(), y, X_unlabeled=unlabeled.numpy()).shift_, singles.shift_)


def test_tensors_also_with_gradients():
    X, y, unlabeled = episode(dtype=np.float32)
    plain = BDCSPN().fit(X, y, X_unlabeled=unlabeled)
    X, unlabeled = torch.tensor(X, requires_grad=True), torch.tensor(unlabeled, requires_grad=True)
    for labels in (torch.from_numpy(y), list(torch.from_numpy(y))):
        classifier = BDCSPN().fit(X, labels, X_unlabeled=unlabeled * 1)
        same(classifier.classes_, plain.classes_)
        same(classifier.prototypes_, plain.prototypes_)
        same(classifier.predict(unlabeled), plain.transduction_)


def test_the_unlabeled_features_decide_between_two_floating_types():
    X, y, unlabeled = episode()
    single = unlabeled.astype(np.float32)
    # These norms are out of the range of float32, but only the directions matter.
    mixed = BDCSPN().fit(X * 1e150, y, X_unlabeled=single)
    assert mixed.prototypes_.dtype == np.float32
    whole = BDCSPN().fit(X.astype(np.float32), y, X_unlabeled=single)
    np.testing.assert_allclose(mixed.prototypes_, whole.prototypes_, atol=1e-6)
    assert mixed.predict_proba(unlabeled * 1e150).dtype == np.float64
    np.testing.assert_allclose(
        mixed.predict_proba(unlabeled * 1e150), whole.predict_proba(single), 1e-5
    )


def test_frames_and_their_column_names():
    X, y, unlabeled = episode()
    names = [f"f{i}" for i in range(24)]
    X, unlabeled = pd.DataFrame(X, columns=names), pd.DataFrame(unlabeled, columns=names)
    y = pd.Series(y, index=X.index).map(lambda way: f"class {way}")
    classifier = BDCSPN().fit(X, y, X_unlabeled=unlabeled)
    assert list(classifier.feature_names_in_) == names
    same(classifier.predict(unlabeled), classifier.transduction_)
    plain = BDCSPN().fit(X.to_numpy(), y, X_unlabeled=unlabeled.to_numpy())
    same(classifier.transduction_, plain.transduction_)
    with pytest.raises(DataError, match=r"X_unlabeled: The feature names should match"):
        BDCSPN().fit(X, y, X_unlabeled=unlabeled[names[::-1]])


def test_read_only_mapped_and_reversed_arrays(tmp_path):
    X, y, unlabeled = episode(dtype=np.float32)
    np.save(tmp_path / "unlabeled.npy", unlabeled)
    mapped = np.load(tmp_path / "unlabeled.npy", mmap_mode="r")
    X.setflags(write=False)
    plain = BDCSPN().fit(X, y, X_unlabeled=unlabeled)
    same(BDCSPN().fit(X, y, X_unlabeled=mapped).prototypes_, plain.prototypes_)
    reversed_rows = BDCSPN().fit(X[::-1], y[::-1], X_unlabeled=unlabeled[::-1])
    np.testing.assert_allclose(reversed_rows.prototypes_, plain.prototypes_, atol=1e-6)
    assert np.array_equal(np.load(tmp_path / "unlabeled.npy"), unlabeled)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda unlabeled: np.where(unlabeled == unlabeled[0, 0], np.nan, unlabeled),
            "X_unlabeled: .* NaN",
        ),
        (
            lambda unlabeled: np.where(unlabeled == unlabeled[0, 0], np.inf, unlabeled),
            "X_unlabeled: .* infinity",
        ),
        (lambda unlabeled: unlabeled[:, :-1], "X_unlabeled: .* 23 features.* 24 features"),
        (lambda unlabeled: unlabeled[:0], "X_unlabeled: .* 0 sample"),
        (lambda unlabeled: unlabeled[0], "X_unlabeled: .* 1D array"),
    ],
)
def test_unlabeled_features_that_cannot_be_used(damage, message):
    X, y, unlabeled = episode()
    for kind in (CSPN, BDCSPN):
        with pytest.raises(DataError, match=message):
            kind().fit(X, y, X_unlabeled=damage(unlabeled))


# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ["wolf", "ant", "", "été", "a" * 99],
        [7, -3, 0, 2**40, 5],
        [2**80, -1, 3, 4, 5],
        [1.0, -2.0, 4.0, 1e9, 0.0],
        [Fraction(1, 3), Fraction(1, 7), Fraction(0), Fraction(5), Fraction(9)],
        [True, False],
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, lambda y: np.array(y, object)])
def test_labels_of_one_kind_are_sorted(labels, form):
    X, codes, unlabeled = episode(len(labels))
    y = [labels[code] for code in codes]
    classifier = BDCSPN().fit(X, form(y), X_unlabeled=unlabeled)
    assert classifier.classes_.tolist() == sorted(labels)
    assert {type(label) for label in classifier.classes_.tolist()} == {type(labels[0])}
    numbered = BDCSPN().fit(X, codes, X_unlabeled=unlabeled)
    assert classifier.transduction_.tolist() == [labels[code] for code in numbered.transduction_]
    same(classifier.predict(unlabeled), classifier.transduction_)


class Animal(Enum):
    WOLF = 1
    ANT = 2


@pytest.mark.parametrize(
    "labels",
    [
        ["b", 1, None, 2.5, "a"],
        [("b", 1), ("a", 2), ("a",), (), ("a", (None, 2))],
        [(1, 2), (0, 3)],
        [1, "1"],
        [None, False, "None"],
        [Animal.WOLF, Animal.ANT],
        [frozenset("ab"), frozenset("a"), frozenset("b")],
        [b"b", b"a"],
    ],
    ids=lambda labels: type(labels[0]).__name__,
)
@pytest.mark.parametrize("form", [list, tuple, pd.Series])
def test_other_labels_keep_their_type_in_the_order_they_appear(labels, form):
    X, codes, unlabeled = episode(len(labels))
    y = [labels[code] for code in codes]
    classifier = BDCSPN().fit(X, form(y), X_unlabeled=unlabeled)
    assert classifier.classes_.tolist() == labels
    predicted = classifier.predict(unlabeled).tolist()
    assert predicted == classifier.transduction_.tolist()
    numbered = BDCSPN().fit(X, codes, X_unlabeled=unlabeled).transduction_
    assert predicted == [labels[code] for code in numbered]
    assert [type(label) for label in predicted] == [type(labels[code]) for code in numbered]


def test_labels_that_cannot_be_used():
    X, y, _ = episode()
    with pytest.raises(ValueError, match="continuous"):
        CSPN().fit(X, y + 0.5)
    with pytest.raises(ValueError, match="continuous"):
        CSPN().fit(X, (y + 0.5).tolist())
    with pytest.raises(DataError, match="one class only, 'wolf'"):
        CSPN().fit(X, ["wolf"] * len(X))
    with pytest.raises(DataError, match="not hashable"):
        CSPN().fit(X, [[int(label)] for label in y])
    with pytest.raises(ValueError, match="NaN"):
        CSPN().fit(X, [None, np.nan] * 5)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        CSPN().fit(X, [None, "a"])


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        ["wolf", "ant", "été"],
        [7, -3, 2**40],
        [2**80, -1, 3],
        [1.0, -2.0, 1e9],
        [True, False],
        ["b", 1, None, 2.5, True],
        [("b", 1), ("a", (None, 2.0)), ()],
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_loaded_classifier_predicts_the_same(tmp_path, labels, dtype):
    X, codes, unlabeled = episode(len(labels), dtype=dtype)
    y = [labels[code] for code in codes]
    classifier = BDCSPN(z=np.int64(3), epsilon=2.0, scale=5.0).fit(X, y, X_unlabeled=unlabeled)
    classifier.save(tmp_path / "clf.safetensors")
    loaded = BDCSPN.load(tmp_path / "clf.safetensors")
    assert loaded.get_params() == classifier.get_params()
    for name in ("classes_", "prototypes_", "shift_"):
        same(getattr(loaded, name), getattr(classifier, name))
    assert [type(a) for a in loaded.classes_] == [type(a) for a in classifier.classes_]
    assert loaded.n_features_in_ == 24
    same(loaded.predict(unlabeled), classifier.transduction_)
    same(loaded.predict_proba(unlabeled), classifier.predict_proba(unlabeled))
    assert not hasattr(loaded, "transduction_")
    assert not hasattr(loaded, "feature_names_in_")
    with pytest.raises(ValueError, match="expecting 24 features"):
        loaded.predict(unlabeled[:, 1:])


def test_arrays_of_short_labels_keep_their_type(tmp_path):
    X, y, _ = episode()
    for labels in (y.astype(np.int8), y.astype("U1"), y.astype("U1").astype(object)):
        CSPN().fit(X, labels).save(tmp_path / "clf")
        same(CSPN.load(tmp_path / "clf").predict(X), CSPN().fit(X, labels).predict(X))


def test_column_names_are_saved(tmp_path):
    X, y, _ = episode()
    frame = pd.DataFrame(X).add_prefix("f")
    classifier = CSPN().fit(frame, y)
    classifier.save(tmp_path / "clf")
    loaded = CSPN.load(tmp_path / "clf")
    same(loaded.feature_names_in_, classifier.feature_names_in_)
    same(loaded.predict(frame), classifier.predict(frame))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        loaded.predict(X)


@pytest.mark.parametrize("labels", [[Animal.WOLF, Animal.ANT], [b"a", b"b"], [(1, b"a"), 2]])
def test_labels_that_cannot_be_saved(tmp_path, labels):
    X, y, _ = episode(2)
    classifier = CSPN().fit(X, [labels[code] for code in y])
    with pytest.raises(DataError, match=r"cannot save .* of type (Animal|bytes); only strings"):
        classifier.save(tmp_path / "clf")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_other_class_names_both(tmp_path):
    X, y, _ = episode()
    for kind, other in ((CSPN, BDCSPN), (BDCSPN, CSPN)):
        kind().fit(X, y).save(tmp_path / "clf")
        name = kind.__name__
        message = f"holds a {name}, not a {other.__name__}; load it with {name}.load"
        with pytest.raises(DataError, match=message):
            other.load(tmp_path / "clf")


def test_a_file_of_another_kind_or_with_parts_missing(tmp_path):
    X, y, _ = episode()
    path = tmp_path / "clf"
    CSPN().fit(X, y).save(path)
    tensors, config = load_tensors(path)
    save_tensors(path, tensors, {**config, "kind": "backbone"})
    with pytest.raises(DataError, match="'backbone', not 'estimator'"):
        CSPN.load(path)
    damages = [
        ({}, config),
        ({**tensors, "shift": torch.zeros(3)}, config),
        ({**tensors, "shift": torch.tensor(1.0)}, config),
        (tensors, {**config, "classes": ["one"]}),
        (tensors, {**config, "classes_dtype": "nonsense"}),
        (tensors, {**config, "classes_dtype": "<U2000000000"}),
        (tensors, {**config, "classes_dtype": "9" * 5000}),
        (tensors, {**config, "params": {"tau": 3}}),
        (tensors, {"kind": "estimator", "class": "CSPN"}),
    ]
    for content in damages:
        save_tensors(path, *content)
        with pytest.raises(DataError, match="holds a damaged CSPN"):
            CSPN.load(path)


def test_only_a_fitted_classifier_is_saved(tmp_path):
    with pytest.raises(NotFittedError):
        CSPN().save(tmp_path / "clf")


# --- memory --------------------------------------------------------------------------------------

LARGE_QUERY_SET = """
import resource
import numpy as np
from protorect.estimators.bd_cspn import BDCSPN

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

rng = np.random.default_rng(0)
X, y = rng.random((25, 640), dtype=np.float32), np.arange(25) % 5
BDCSPN().fit(X, y, X_unlabeled=rng.random((5_000, 640), dtype=np.float32))  # lazy imports
X_unlabeled = rng.random((60_000, 640), dtype=np.float32)
before = peak()
classifier = BDCSPN().fit(X, y, X_unlabeled=X_unlabeled)
classifier.predict(X_unlabeled)
classifier.predict_proba(X_unlabeled)
print((peak() - before) / X_unlabeled.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is counted differently elsewhere")
def test_no_second_copy_of_the_unlabeled_features():
    command = [sys.executable, "-c", LARGE_QUERY_SET]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # A few (n, ways) arrays are made; a copy of the features would be 1.
    assert float(output) < 0.25


def test_predicting_without_warnings_in_threads():
    X, y, unlabeled = episode(dtype=np.float32)
    classifier = BDCSPN().fit(X, y, X_unlabeled=unlabeled)
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("error")
        for predicted in pool.map(classifier.predict, [unlabeled] * 20):
            same(predicted, classifier.transduction_)
