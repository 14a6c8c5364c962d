"""CSPN and its rectifications.

Jinlu Liu, Liang Song, Yongqiang Qin: "Prototype Rectification for Few-Shot Learning", ECCV 2020.

The paper's ablation is four settings of the same options; a fifth takes the weights of eq. (6) from
a softmax over the classes. The table above says which of them shift the queries and which rectify
the prototypes; what the paper leaves open is in `docs/method.md`.

Assumes, where the queries are shifted, the same class proportions in queries and support; prefer
`bd-i` where they differ.
"""

from torch import Tensor

from protorect.core.functional import Features, Options, rectify
from protorect.methods.method import register


def rectification(
    support: Features, labels: Tensor, query: Features, ways: int, options: Options
) -> Tensor:
    """Scores (tasks, n_query, ways) of the queries after the rectification that `options` names."""
    return rectify(support, labels, query, ways, options).scores


register("cspn", Options(z=0, shift=False), "inductive", "nearest basic prototype by cosine")(
    rectification
)
for _name, _options, _summary in (
    ("bd-c", Options(z=0), "queries shifted to the support (cross-class bias)"),
    ("bd-i", Options(shift=False), "confident queries join the prototypes (intra-class bias)"),
    ("bd-cspn", Options(), "both corrections, weights of eq. (6) as printed"),
    ("bd-cspn-classes", Options(weighting="classes"), "both, weights from a softmax over classes"),
):
    register(_name, _options, "transductive", _summary)(rectification)
