"""Label propagation: labels spread over a graph of all samples until they agree.

Dengyong Zhou, Olivier Bousquet, Thomas Navin Lal, Jason Weston, Bernhard Schoelkopf: "Learning with
Local and Global Consistency", NeurIPS 2004; used for few-shot learning by Yanbin Liu et al.:
"Learning to Propagate Labels: Transductive Propagation Network" (TPN), ICLR 2019. Every sample
is joined to its nearest 20, the graph is made symmetric, and labels spread to their limit
(I - alpha S)^-1 Y in closed form. TPN learns a width for each sample with its network; here
one width holds for all features, which are normalised.

Assumes that neighbours share their class, and that every class is reached from its support. A query
that no support sample reaches scores zero for all classes. Needs the square of the number of
samples in memory and its cube in operations.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect._utils.parameters import check_number, check_whole
from protorect.core.functional import Features, membership
from protorect.core.unit_rows import UnitRows
from protorect.methods._solvers.nearness import joint_cosines, nearest_others


@dataclass(frozen=True)
class LabelPropagationOptions:
    """The choices of the graph.

    Parameters
    ----------
    neighbours
        How many nearest others each sample is joined to; 20 as in TPN.
    alpha
        How much of its label a sample takes from its neighbours; 0.99 as in both papers.
    sigma
        Width of the similarity exp(-distance^2 / (2 sigma^2)) between normalised features. The
        papers give none that would hold for other features; this one was chosen on the validation
        classes of Omniglot and CUB (ConvNet-64, and EfficientNet-Lite0 on CUB; classes equal and
        not), where 0.05 to 0.1 do equally well and 0.2 is worse.
    """

    neighbours: int = 20
    alpha: float = 0.99
    sigma: float = 0.1

    def __post_init__(self) -> None:
        check_whole("neighbours", self.neighbours, 1)
        check_number("alpha", self.alpha, 0, 0.9999)
        check_number("sigma", self.sigma, 0.01, 100)


def label_propagation(
    support: Features, labels: Tensor, query: Features, ways: int, options: LabelPropagationOptions
) -> Tensor:
    """How much of each class's labels arrives at each query, (tasks, n_query, ways)."""
    support, query = UnitRows.of(support), UnitRows.of(query)
    tasks, n_support = support.scale.shape
    graph = _graph(joint_cosines(support, query), options)
    known = membership(labels, ways).to(graph.dtype).expand(tasks, n_support, ways)
    start = torch.nn.functional.pad(known, (0, 0, 0, query.scale.shape[1]))  # (tasks, n, ways)
    system = graph.mul_(-options.alpha)  # I - alpha S, with eigenvalues in 1 - alpha .. 1 + alpha
    system.diagonal(dim1=-2, dim2=-1).add_(1)
    return torch.cholesky_solve(start, torch.linalg.cholesky(system))[:, n_support:]


def _graph(cosines: Tensor, options: LabelPropagationOptions) -> Tensor:
    """S = D^-1/2 W D^-1/2 (tasks, n, n), W the similarities of samples that are neighbours."""
    highest, places = nearest_others(cosines, options.neighbours)
    near = cosines.fill_(-torch.inf).scatter_(-1, places, highest)  # its memory, used again
    near = torch.maximum(near, near.mT)  # neighbours if either is the other's
    # log W but for a constant that S does not know, as |x - y|^2 = 2 - 2 cos. In logarithms no
    # similarity is too small to be told from zero.
    near /= options.sigma**2
    half_degrees = near.logsumexp(dim=-1) / 2
    near -= half_degrees.unsqueeze(-1)
    near -= half_degrees.unsqueeze(-2)
    return near.exp_()
