"""CSPN and its rectifications.

Jinlu Liu, Liang Song, Yongqiang Qin: "Prototype Rectification for Few-Shot Learning", ECCV 2020.

The paper's ablation is four settings of the same options; a fifth takes the weights of eq. (6) from
a softmax over the classes. The table above says which of them shift the queries and which rectify
the prototypes; what the paper leaves open is in `docs/method.md`. Support samples count for the
class of their label, queries join by prediction.

Assumes, where the queries are shifted, the same class proportions in queries and support; prefer
`bd-i` where they differ.
"""

from dataclasses import replace

from protorect.core.functional import Options, rectify
from protorect.methods.interface import Solution, Task
from protorect.methods.method import register
from protorect.methods.rules import CosineRule


def rectification(task: Task, options: Options) -> Solution:
    """Cosines with the prototypes after the rectification that `options` names."""
    if not task.n_unlabeled:
        options = replace(options, z=0, shift=False)
    prior = task.prior_scores(options.scale)
    prototypes, shift, scores = rectify(
        task.support, task.labels, task.unlabeled, task.ways, options, prior
    )
    return Solution(scores, lambda: CosineRule(prototypes, shift))


for _name, _options, _summary in (
    ("cspn", Options(z=0, shift=False), "nearest basic prototype by cosine"),
    ("bd-c", Options(z=0), "queries shifted to the support (cross-class bias)"),
    ("bd-i", Options(shift=False), "confident queries join the prototypes (intra-class bias)"),
    ("bd-cspn", Options(), "both corrections, weights of eq. (6) as printed"),
    ("bd-cspn-classes", Options(weighting="classes"), "both, weights from a softmax over classes"),
):
    register(
        _name,
        _options,
        "inductive" if _name == "cspn" else "transductive",
        _summary,
        uses_prior=True,
    )(rectification)
