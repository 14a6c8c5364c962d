"""Label propagation: labels spread over a nearest-neighbor graph of all samples.

Dengyong Zhou, Olivier Bousquet, Thomas Navin Lal, Jason Weston, Bernhard Schoelkopf: "Learning with
Local and Global Consistency", NeurIPS 2004; used for few-shot learning by Yanbin Liu et al.:
"Learning to Propagate Labels: Transductive Propagation Network" (TPN), ICLR 2019. Every sample
is connected to its 20 nearest, the graph is made symmetric, and labels spread to their limit
(I - alpha S)^-1 Y in closed form. TPN learns a width for each sample with its network; here
one width holds for all features, which are normalized.

Assumes that neighbors share their class, and that every query is connected to the support. A query
that is not scores zero for all classes. Memory grows with the square of the number of samples, time
with its cube.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import basic_prototypes
from protorect.methods._solvers.gram import joint_cosines, nearest_neighbors
from protorect.methods.interface import Solution, Task, assignment_rule
from protorect.methods.method import register
from protorect.methods.rules import CosineRule


class LabelPropagationOptions(Parameters):
    """Options of the graph."""

    neighbors: int = parameter(
        20,
        "Number of nearest others that each sample is connected to; 20 as in TPN.",
        minimum=1,
        aliases=("neighbours",),
    )
    alpha: float = parameter(
        0.99, "Part of a label that comes from neighbors; 0.99 as in both papers.", maximum=0.9999
    )
    sigma: float = parameter(
        0.1,
        "Width of the similarity exp(-distance^2 / (2 sigma^2)) between normalized features. The "
        "papers give none that would hold for other features; this one was chosen on the "
        "validation classes of Omniglot and CUB (ConvNet-64, and EfficientNet-Lite0 on CUB; "
        "balanced and unbalanced), where 0.05 to 0.1 do equally well and 0.2 is worse.",
        minimum=0.01,
        maximum=100,
    )


@register(
    "label-propagation",
    LabelPropagationOptions(),
    "transductive",
    "labels spread among neighbors",
    has_rule=False,
)
def label_propagation(task: Task, options: LabelPropagationOptions) -> Solution | CosineRule:
    """How much of each class's labels arrives at each query."""
    if not task.n_unlabeled:
        return CosineRule(basic_prototypes(task.support, task.labels, task.ways))
    support, unlabeled = task.unit_rows()
    graph = _graph(joint_cosines(support, unlabeled), options)
    start = pad(task.members_by_class().mT, (0, 0, 0, unlabeled.n))  # (tasks, n, ways)
    system = graph.mul_(-options.alpha)  # I - alpha S, with eigenvalues in 1 - alpha .. 1 + alpha
    system.diagonal(dim1=-2, dim2=-1).add_(1)
    scores = torch.cholesky_solve(start, torch.linalg.cholesky(system))[:, support.n :]

    def rule() -> CosineRule:
        received = scores.clamp_min(0)
        total = received.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(scores.dtype).tiny)
        return assignment_rule(task, received / total)

    return Solution(scores, rule)


def _graph(cosines: Tensor, options: LabelPropagationOptions) -> Tensor:
    """S = D^-1/2 W D^-1/2 (tasks, n, n), W the similarities of samples that are neighbors."""
    values, positions = nearest_neighbors(cosines, options.neighbors)
    log_w = cosines.fill_(-torch.inf).scatter_(-1, positions, values)  # its memory, used again
    log_w = torch.maximum(log_w, log_w.mT)  # neighbors if either is the other's
    # log W up to a constant that cancels in S, as |x - y|^2 = 2 - 2 cos. Logarithms keep
    # similarities that are too small for W itself.
    log_w /= options.sigma**2
    half_degrees = log_w.logsumexp(dim=-1) / 2
    log_w -= half_degrees.unsqueeze(-1)
    log_w -= half_degrees.unsqueeze(-2)
    return log_w.exp_()
