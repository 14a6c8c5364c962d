"""Scores of new samples after a fit to others, by the slow reference implementations."""

from __future__ import annotations

import numpy as np
import torch

from reference import baselines, bd_cspn_plus, rectification, transduction


def scores(
    name: str, support, labels, unlabeled, new, ways: int, *, inductive: bool, **options
) -> np.ndarray:
    """(n_new, ways), up to a constant per sample; all features float64 arrays."""
    if name in rectification.METHODS:
        fitted = rectification.rectify_episode(
            support, labels, unlabeled, ways, **rectification.METHODS[name]
        )
        shifted = [rectification.shifted(x, fitted.xi) for x in new]
        return np.array([rectification.cosines(x, fitted.prototypes) for x in shifted])
    if name in baselines.REFERENCES:
        function = baselines.REFERENCES[name]
        if inductive:  # a new sample is a query like any other
            return function(support, labels, new, ways, **options)
        return function(support, labels, unlabeled, ways, new=new, **options)
    if name == "bd-cspn-plus":
        return bd_cspn_plus.scores(support, labels, unlabeled, ways, new=new, **options)
    function = getattr(transduction, name.replace("-", "_"))
    parts = (torch.from_numpy(part) for part in (support, labels, unlabeled))
    return function(*parts, ways, new=torch.from_numpy(new), **options).numpy()
