"""Soft assignment of queries to classes, every class getting the same number of them.

The assignment p_ik = softmax_k(affinity_ik + potential_k) whose classes add up to given counts is
the optimal transport with entropy that Sinkhorn's algorithm finds (Cuturi, "Sinkhorn Distances",
NeurIPS 2013). That algorithm takes hundreds of rounds where the classes are distinct. But the
potentials are no more than the classes, and they maximise the concave

    sum_k count potential_k - sum_i logsumexp_k(affinity_ik + potential_k),

so that Newton's method finds the same assignment in a few rounds.
"""

from __future__ import annotations

import torch
from torch import Tensor

TOLERANCE = 1e-8  # of what a class gets, in queries
ROUNDS = 100
_DAMPING = 1e-2  # of Newton's step, for each query that the worst class lacks
_LONGEST = 8.0  # change of a potential in a round: a factor of 3000 in a probability


def equal_parts(affinities: Tensor, potentials: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities under which every class gets n_query / ways queries, and their potentials.

    Parameters
    ----------
    affinities
        (tasks, ways, n_query), exponents of the probabilities.
    potentials
        (tasks, ways, 1), float64, where to start: zeros, or those of similar affinities.

    Returns
    -------
    log_p
        (tasks, ways, n_query), logarithms of probabilities that sum to one over the classes.
    potentials
        (tasks, ways, 1), float64.
    """
    exact = affinities.double()  # the objective is a difference of large sums
    count = affinities.shape[2] / affinities.shape[1]
    log_p, value = _climbed(exact, potentials, count)
    damping = torch.full_like(value, _DAMPING)
    for _ in range(ROUNDS):
        p = log_p.exp()
        lacking = count - p.sum(dim=2, keepdim=True)
        worst = lacking.abs().amax(dim=1, keepdim=True)
        if float(worst.max()) <= TOLERANCE:
            break
        trial = potentials + _newton_step(p, lacking, damping * worst.clamp(min=TOLERANCE))
        trial_log_p, trial_value = _climbed(exact, trial, count)
        better = trial_value >= value - 1e-12 * value.abs()
        # A step that goes too far is not taken, and the next one is shorter.
        damping = torch.where(better, _DAMPING, 100 * damping)
        potentials = torch.where(better, trial, potentials)
        log_p = torch.where(better, trial_log_p, log_p)
        value = torch.where(better, trial_value, value)
    return log_p.to(affinities.dtype), potentials


def _climbed(affinities: Tensor, potentials: Tensor, count: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities, and the value of the objective, (tasks, 1, 1)."""
    logits = affinities + potentials
    totals = torch.logsumexp(logits, dim=1, keepdim=True)
    value = count * potentials.sum(dim=1, keepdim=True) - totals.sum(dim=2, keepdim=True)
    return logits.sub_(totals), value


def _newton_step(p: Tensor, lacking: Tensor, damping: Tensor) -> Tensor:
    """Change of the potentials (tasks, ways, 1)."""
    curvature = p @ p.mT
    curvature.neg_().diagonal(dim1=1, dim2=2).add_((p.sum(dim=2, keepdim=True) + damping)[..., 0])
    step: Tensor = torch.linalg.solve(curvature, lacking)
    return step * (_LONGEST / step.abs().amax(dim=1, keepdim=True)).clamp_(max=1.0)
