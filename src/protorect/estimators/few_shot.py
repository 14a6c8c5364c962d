"""A scikit-learn classifier over any method by its name."""

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protorect._utils.parameters import check_flag
from protorect._utils.tensors import tensor_of
from protorect.core.functional import predictions
from protorect.errors import DataError, OptionError
from protorect.estimators.base import TransductiveClassifier, blocks_of_rows
from protorect.estimators.inputs import Array
from protorect.estimators.known_samples import KnownSamples
from protorect.methods import Method, method
from protorect.methods.rules import Rule
from protorect.uncertainty.calibrated import CalibratedRule, Scored, fit_calibrated
from protorect.uncertainty.calibration import Calibration
from protorect.uncertainty.ood import SimilarityRule

_RULES = ("rule", "similarity")


class FewShotClassifier(TransductiveClassifier):
    """Few-shot classification by any method: a few labeled features, many unlabeled ones.

    Parameters
    ----------
    method
        Its name, with or without options: "bd-cspn-plus", "bd-cspn:z=4". `protorect methods` lists
        them. A `Method` is taken, too.
    calibrate
        Whether `predict_proba` is calibrated: on the labeled features, each of which is held out
        once, and on how distinct the classes are among the unlabeled ones. Without it,
        probabilities are softmax(10 x score).

    Attributes
    ----------
    classes_
        (n_classes,), the labels: sorted where they are all strings, all numbers or all booleans,
        otherwise in the order in which they appear.
    transduction_
        (n_unlabeled,), the predicted labels of X_unlabeled; empty without it.
    rule_
        What scores new features.

    Notes
    -----
    A row of X_unlabeled that is predicted later keeps the label that it got together with all the
    others, so `predict(X_unlabeled)` is `transduction_`. Other features are scored by the method's
    rule for new samples (`protorect methods NAME`).

    Examples
    --------
    >>> import protorect
    >>> X, y = [[1.0, 0.1], [0.1, 1.0]], ["cat", "dog"]
    >>> X_unlabeled = [[0.9, 0.4], [0.8, 0.2], [0.3, 0.8], [0.2, 0.7]]
    >>> clf = protorect.FewShotClassifier("bd-cspn:z=2").fit(X, y, X_unlabeled=X_unlabeled)
    >>> clf.transduction_.tolist()
    ['cat', 'cat', 'dog', 'dog']
    >>> clf.predict([[0.5, 0.1]]).tolist()
    ['cat']
    """

    def __init__(self, method: str | Method = "bd-cspn-plus", calibrate: bool = True) -> None:
        self.method = method
        self.calibrate = calibrate

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, n_classes) in the order of `classes_`."""
        scores = self._scores(self._checked(X))
        return np.asarray(self.rule_.probabilities(scores).numpy())

    def ood_score(self, X: Any) -> Array:
        """Out-of-distribution scores (n,) in 0 .. 1 of features X (n, n_features).

        A sample of the classes has a score above 1 - p with a probability of at most about p.
        """
        X = self._checked(X)
        dtype = np.result_type(X, self._known.scores.numpy())
        found = torch.empty(len(X), dtype=torch.float64)
        for rows, block in blocks_of_rows(X, dtype):
            found[rows] = self.rule_.ood_scores(Scored(block[0], block[0, :, :0]))
        return np.asarray(found.numpy())

    def _saved_parameters(self) -> dict[str, Any]:
        name = method(self.method).name
        try:
            method(name)
        except OptionError as error:  # an option that a name cannot hold
            raise DataError(f"cannot save the method {name}: {error}") from error
        return {**self.get_params(), "method": name}

    def _check_parameters(self) -> None:
        method(self.method)
        check_flag("calibrate", self.calibrate)

    def _fit(self, X: Array, codes: Tensor, ways: int, unlabeled: Array) -> None:
        X = X.astype(unlabeled.dtype, copy=False)
        task = (tensor_of(X), codes, tensor_of(unlabeled))
        chosen, calibrate = method(self.method), bool(self.calibrate)
        self.rule_, scored = fit_calibrated(chosen, *task, calibrate=calibrate)
        self._known = KnownSamples.of(unlabeled, scored.scores)

    def _scores(self, X: Array) -> Tensor:
        dtype = np.result_type(X, self._known.scores.numpy())
        scores = torch.from_numpy(np.empty((len(X), self._known.scores.shape[1]), dtype))
        for rows, block in blocks_of_rows(X, dtype):
            found, new = self._known.find(block[0].numpy())
            if new.any():
                scores[rows] = self.rule_.new_scores(block)
            scores[rows][~new] = found.to(scores.dtype)
        return scores

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors = {f"known.{name}": t for name, t in vars(self._known).items()}
        config: dict[str, Any] = {"calibration": asdict(self.rule_.calibration)}
        config["score_scale"] = self.rule_.score_scale
        for part in _RULES:
            rule: Rule = getattr(self.rule_, part)
            own, numbers = rule.state()
            tensors |= {f"{part}.{name}": tensor for name, tensor in own.items()}
            config[part] = {"class": type(rule).__name__, "numbers": numbers}
        return tensors, config

    def _restore(self, tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
        if "cosine_rule" in config:
            raise ValueError("an earlier version wrote it, with other out-of-distribution scores")
        rule, similarity = (
            Rule.restore(config[part]["class"], _named(tensors, part), config[part]["numbers"])
            for part in _RULES
        )
        calibration = Calibration(**{k: float(v) for k, v in config["calibration"].items()})
        if not isinstance(similarity, SimilarityRule):
            raise ValueError(f"{type(similarity).__name__} is no rule of similarities")
        self._known = KnownSamples(**_named(tensors, "known"))
        scale = float(config["score_scale"])
        self.rule_ = CalibratedRule(rule, similarity, calibration, scale)
        self.n_features_in_ = rule.sizes["dim"]
        _check_shapes(self.rule_, self._known, len(self.classes_))
        self.transduction_ = np.asarray(self.classes_[predictions(self._known.scores).numpy()])


def _named(tensors: dict[str, Tensor], part: str) -> dict[str, Tensor]:
    """The tensors of one part by their names in it."""
    start = f"{part}."
    return {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}


def _check_shapes(rule: CalibratedRule, known: KnownSamples, ways: int) -> None:
    """Raise ValueError if the parts of a file do not belong together."""
    dim, n = rule.rule.sizes["dim"], len(known.hashes)
    shapes = {
        "known.scores": (known.scores, (n, ways)),
        "known.hashes": (known.hashes, (n,)),
        "known.order": (known.order, (n,)),
    }
    for name, (tensor, expected) in shapes.items():
        if tuple(tensor.shape) != expected:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)} instead of {expected}")
    if not torch.equal(known.order.sort().values, torch.arange(n)):
        raise ValueError("known.order is not an order of the samples")
    for part in (rule.rule, rule.similarity):
        if (part.sizes["tasks"], part.sizes["ways"], part.sizes["dim"]) != (1, ways, dim):
            raise ValueError(f"a rule of {part.sizes} instead of {ways} classes")
