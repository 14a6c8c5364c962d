"""scikit-learn classifiers: the equations of `protorect.core.functional` on one task.

Both take numpy arrays, torch tensors and pandas frames, compute in the floating type of the
features (float16 in float32), and accept any hashable labels.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protorect._utils.parameters import check_flag
from protorect._utils.tensors import tensor_of
from protorect.core import functional
from protorect.core.functional import Assignment, Options, Rank, Weighting
from protorect.core.unit_rows import UnitRows
from protorect.estimators.base import TransductiveClassifier, blocks_of_rows
from protorect.estimators.inputs import Array


class CSPN(TransductiveClassifier):
    """Cosine similarity prototypical network (CSPN): the nearest basic prototype, eq. (1), (3).

    Parameters
    ----------
    scale
        The factor of the cosines in `predict_proba`, tau of eq. (1).

    Attributes
    ----------
    classes_
        (n_classes,), the labels: sorted where they are all strings, all numbers or all booleans,
        otherwise in the order in which they appear.
    prototypes_
        (n_classes, n_features).
    shift_
        (n_features,), added to a normalized feature before it is classified: zeros.
    transduction_
        (n_unlabeled,), the predicted labels of X_unlabeled; empty without it.

    Examples
    --------
    >>> import protorect
    >>> X, y = [[1.0, 0.1], [0.1, 1.0]], ["cat", "dog"]
    >>> protorect.CSPN().fit(X, y).predict([[0.9, 0.4], [0.2, 0.7]]).tolist()
    ['cat', 'dog']
    """

    def __init__(self, scale: float = 10.0) -> None:
        self.scale = scale

    def predict_proba(self, X: Any) -> Array:
        """softmax(scale x cosine), eq. (1), as (n, n_classes) in the order of `classes_`."""
        scores = self._scores(self._checked(X))
        return np.asarray(functional.probabilities(scores, self.scale).numpy())

    def _options(self) -> Options:
        return Options(z=0, shift=False, scale=self.scale)

    def _check_parameters(self) -> None:
        self._options()

    def _fit(self, X: Array, codes: Tensor, ways: int, unlabeled: Array) -> None:
        support, query, shift = tensor_of(X)[None], tensor_of(unlabeled)[None], None
        if not len(unlabeled):
            prototypes = functional.basic_prototypes(support, codes, ways)
        else:
            if support.dtype != query.dtype:  # normalized first: float32 may not hold its norm
                support = functional.normalize(support).to(query.dtype)
            rectified = functional.rectify(support, codes, query, ways, self._options())
            prototypes, shift = rectified.prototypes, rectified.shift
        self.prototypes_ = prototypes[0].numpy()
        self.shift_ = np.zeros_like(self.prototypes_[0]) if shift is None else shift[0].numpy()

    def _scores(self, X: Array) -> Tensor:
        """Cosines of the shifted features with the prototypes, (n, n_classes)."""
        dtype = np.result_type(self.prototypes_, X)
        prototypes = torch.tensor(self.prototypes_.astype(dtype))[None]
        shift = torch.tensor(self.shift_.astype(dtype))[None]
        scores = prototypes.new_empty(len(X), prototypes.shape[1])
        for rows, block in blocks_of_rows(X, dtype):
            scores[rows] = UnitRows.of(block).shifted_cosines(shift, prototypes)[1][0]
        return scores

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"prototypes": tensor_of(self.prototypes_), "shift": tensor_of(self.shift_)}, {}

    def _restore(self, tensors: dict[str, Tensor], config: dict[str, Any]) -> None:
        self.prototypes_, self.shift_ = tensors["prototypes"].numpy(), tensors["shift"].numpy()
        self.n_features_in_ = len(self.shift_)
        shape, needed = self.prototypes_.shape, (len(self.classes_), self.n_features_in_)
        if shape != needed:
            raise ValueError(f"prototypes of shape {shape} instead of {needed}")


class BDCSPN(CSPN):
    """Bias-diminished CSPN: prototypes rectified by the unlabeled features, eq. (5) to (8).

    Without X_unlabeled there is nothing to rectify by, and it is a `CSPN`. In a pipeline, the
    earlier steps transform X_unlabeled only if it is named in `transform_input`.

    Parameters
    ----------
    z, epsilon, weighting, shift, rank, assignment, scale
        As in `protorect.core.functional.Options`; scale is also that of `predict_proba`.
    rectify
        False for the basic prototypes, like z = 0.

    Attributes
    ----------
    classes_, prototypes_, shift_, transduction_
        As in `CSPN`, with the rectified prototypes and the shift xi of eq. (8).

    Examples
    --------
    >>> import protorect
    >>> X, y = [[1.0, 0.1], [0.1, 1.0]], ["cat", "dog"]
    >>> X_unlabeled = [[0.9, 0.4], [0.8, 0.2], [0.3, 0.8], [0.2, 0.7]]
    >>> protorect.BDCSPN(z=2).fit(X, y, X_unlabeled=X_unlabeled).transduction_.tolist()
    ['cat', 'cat', 'dog', 'dog']
    """

    def __init__(
        self,
        z: int | None = 8,
        epsilon: float = 10.0,
        weighting: Weighting = "samples",
        shift: bool = True,
        rectify: bool = True,
        rank: Rank = "cosine",
        assignment: Assignment = "predicted",
        scale: float = 10.0,
    ) -> None:
        self.z = z
        self.epsilon = epsilon
        self.weighting = weighting
        self.shift = shift
        self.rectify = rectify
        self.rank = rank
        self.assignment = assignment
        self.scale = scale

    def _options(self) -> Options:
        chosen = self.get_params()
        rectify = chosen.pop("rectify")
        check_flag("rectify", rectify)
        options = Options(**chosen)
        return options if rectify else replace(options, z=0)
