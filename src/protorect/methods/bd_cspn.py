"""CSPN and its rectifications.

Jinlu Liu, Liang Song, Yongqiang Qin: "Prototype Rectification for Few-Shot Learning", ECCV 2020.

The paper's ablation is four points in one space of choices, `functional.Options`; a fifth reads
the weights of eq. (6) as a softmax over the classes. Which of them shifts and which rectifies is in
the table above; what the paper leaves open is in `docs/method.md`.

Assumes, where the queries are shifted, that they hold the classes in the proportions of the
support; prefer `bd-i` where they do not.
"""

from __future__ import annotations

from torch import Tensor

from protorect.core.functional import Features, Options, rectify

CSPN = Options(z=0, shift=False)
BD_C = Options(z=0)
BD_I = Options(shift=False)
BD_CSPN = Options()
BD_CSPN_CLASSES = Options(weighting="classes")


def rectification(
    support: Features, labels: Tensor, query: Features, ways: int, options: Options
) -> Tensor:
    """Scores (tasks, n_query, ways) of the queries after the rectification that `options` names."""
    return rectify(support, labels, query, ways, options).scores
