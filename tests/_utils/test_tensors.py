"""Tensors without values, or without one in each place, are refused wherever one is given."""

import numpy as np
import pytest
import torch

import protorect

TASK = torch.tensor([0, 1, 0, 1])
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
LABELS = [0, 1, 0, 1]
WITHOUT = {
    "a meta tensor": torch.zeros(4, 3, device="meta"),
    "sparse": torch.eye(4, 3).to_sparse(),
}
SAMPLED = {"methods": ["cspn"], "way": 2, "shot": 1, "query": 1, "episodes": 2}
USES = {
    "fit": lambda given: protorect.FewShotClassifier().fit(given, LABELS),
    "unlabeled": lambda given: protorect.FewShotClassifier().fit(ROWS, LABELS, X_unlabeled=given),
    "labels": lambda given: protorect.FewShotClassifier().fit(ROWS, given[:, 0]),
    "predict": lambda given: protorect.BDCSPN().fit(ROWS, LABELS).predict(given),
    "method": lambda given: protorect.method("cspn")(
        given[None], torch.tensor(LABELS), given[None]
    ),
    "evaluate": lambda given: protorect.evaluate(given, LABELS, **SAMPLED),
    "evaluated labels": lambda given: protorect.evaluate(ROWS, given[:, 0], **SAMPLED),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", WITHOUT)
def test_a_tensor_without_values_is_refused(kind, use):
    with pytest.raises(protorect.DataError, match=rf"\w+ is {kind}.*; give a dense tensor"):
        USES[use](WITHOUT[kind])
