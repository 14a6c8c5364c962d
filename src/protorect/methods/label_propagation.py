"""Label propagation: labels spread over a nearest-neighbor graph of all samples.

Dengyong Zhou, Olivier Bousquet, Thomas Navin Lal, Jason Weston, Bernhard Schoelkopf: "Learning with
Local and Global Consistency", NeurIPS 2004; used for few-shot learning by Yanbin Liu et al.:
"Learning to Propagate Labels: Transductive Propagation Network" (TPN), ICLR 2019. Labels spread to
their limit (I - alpha S)^-1 Y in closed form, S the normalized similarities of the samples.

The two papers differ in the graph. TPN keeps the 20 largest similarities of each sample, its own
among them, so that every sample is connected to itself; Zhou et al. connect every sample to all
others and never to itself, which is `graph=zhou,neighbors=all`. In both, two samples are connected
if either is among the nearest of the other. TPN learns a width for each sample with its network;
here one width holds for all features, which are normalized. Graph, alpha and sigma were therefore
chosen together on validation classes (`docs/tuning.md`); with TPN's alpha of 0.99 labels spread too
far, and accuracy falls to chance on some features. Support samples spread their label, and take
part in the graph like the queries.

Assumes that neighbors share their class, and that every query is connected to the support. A query
that is not scores zero for all classes. Memory grows with the square of the number of samples, time
with its cube; tasks that are too large for the memory of the machine are refused.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from protorect._utils.memory import physical_memory
from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import basic_prototypes
from protorect.errors import DataError, OptionError
from protorect.methods._solvers.gram import joint_cosines, nearest_neighbors
from protorect.methods.interface import Solution, Task, assignment_rule
from protorect.methods.method import register
from protorect.methods.rules import CosineRule


class LabelPropagationOptions(Parameters):
    """Options of the graph."""

    graph: Literal["tpn", "zhou"] = parameter(
        "zhou",
        'Whether a sample is one of its own neighbors and connected to itself ("tpn") or not '
        '("zhou").',
    )
    neighbors: int | None = parameter(
        20,
        "Number of nearest samples that each sample is connected to, 20 as in TPN; None for all.",
        minimum=1,
        aliases=("neighbours",),
    )
    alpha: float = parameter(
        0.8, "Part of a label that comes from neighbors; 0.99 in both papers.", maximum=0.9999
    )
    sigma: float = parameter(
        0.2,
        "Width of the similarity exp(-distance^2 / (2 sigma^2)) between normalized features.",
        minimum=0.01,
        maximum=100,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.graph == "tpn" and self.neighbors == 1:
            raise OptionError(
                "neighbors is 1, and in TPN's graph that is the sample itself; give 2 or more, or "
                "graph=zhou."
            )


@register(
    "label-propagation",
    LabelPropagationOptions(),
    "transductive",
    "labels spread among neighbors",
    has_rule=False,
    tuned_on="validation classes of Omniglot, cropped CUB and miniImageNet",
)
def label_propagation(task: Task, options: LabelPropagationOptions) -> Solution | CosineRule:
    """How much of each class's labels arrives at each query."""
    if not task.n_unlabeled:
        return CosineRule(basic_prototypes(task.support, task.labels, task.ways))
    support, unlabeled = task.unit_rows()
    _check_memory(len(support.rows), support.n + unlabeled.n, support.dtype.itemsize)
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


def _check_memory(tasks: int, n: int, itemsize: int) -> None:
    """Refuse what cannot be allocated: the graph, a copy of it, and its factor."""
    needed, present = 3 * tasks * n**2 * itemsize, physical_memory()
    if needed > present:
        raise DataError(
            f"label-propagation needs {needed / 2**30:,.0f} GiB for the pairs of {n:,} samples, "
            f"and this machine has {present / 2**30:,.0f} GiB; give fewer samples at once, or take "
            "another method."
        )


def _graph(cosines: Tensor, options: LabelPropagationOptions) -> Tensor:
    """S = D^-1/2 W D^-1/2 (tasks, n, n), W the similarities of samples that are neighbors."""
    n, self_loops = cosines.shape[-1], options.graph == "tpn"
    others = (options.neighbors or n) - self_loops
    log_w = cosines
    if others < n - 1:
        values, positions = nearest_neighbors(cosines, others)
        log_w = cosines.fill_(-torch.inf).scatter_(-1, positions, values)  # its memory, used again
        log_w = torch.maximum(log_w, log_w.mT)  # neighbors if either is the other's
    log_w.diagonal(dim1=-2, dim2=-1).fill_(1.0 if self_loops else -torch.inf)
    # log W up to a constant that cancels in S, as |x - y|^2 = 2 - 2 cos. Logarithms keep
    # similarities that are too small for W itself.
    log_w /= options.sigma**2
    half_degrees = log_w.logsumexp(dim=-1) / 2
    log_w -= half_degrees.unsqueeze(-1)
    log_w -= half_degrees.unsqueeze(-2)
    return log_w.exp_()
