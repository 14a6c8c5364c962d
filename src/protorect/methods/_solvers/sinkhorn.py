"""Soft assignment of queries to classes: balanced, or with the most likely class proportions.

The balanced assignment p_ik = softmax_k(logit_ik + potential_k) has potentials such that every
class gets n_query / ways queries: entropic optimal transport (Cuturi, "Sinkhorn Distances", NeurIPS
2013). `balance` takes a few of Sinkhorn's iterations, `balance_exactly` converges.

Logits are (tasks, ways, n_query), per-class values (tasks, ways, 1).
"""

import torch
from torch import Tensor

ITERATIONS = 8  # of Sinkhorn's algorithm in `balance`, and of expectation maximization

_TOLERANCE = 1e-8  # of the class totals, in queries
_MAX_NEWTON_STEPS = 100
_DAMPING = 1e-2  # of the Newton step, relative to the largest residual
_MAX_CHANGE = 8.0  # of a potential in one step: a factor of 3000 in a probability


def balance(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Approximately balanced probabilities, and the potentials added to the logits."""
    affinity = _affinity(logits)
    smallest = torch.finfo(affinity.dtype).tiny ** 0.5
    factors = affinity.new_ones(*affinity.shape[:-1], 1)  # exp(potential)
    for _ in range(ITERATIONS):
        factors = factors / _class_totals(affinity, factors).clamp_min_(smallest)
        factors = (factors / factors.amax(dim=-2, keepdim=True)).clamp_min_(smallest)
    return (affinity * factors).div_(factors.mT @ affinity), factors.log()


def class_proportions(logits: Tensor, added: float = 0.0) -> tuple[Tensor, Tensor]:
    """Most likely class proportions (tasks, ways, 1), and their gain in log-likelihood.

    They are estimated by expectation maximization; `added` times the mean number of queries per
    class is added to each class. The gain (tasks, 1, 1) is that over equal proportions, at least 0.
    """
    affinity = _affinity(logits)
    ways, n_query = affinity.shape[-2:]
    proportions = torch.full_like(affinity[..., :1], 1 / ways)
    balanced = (proportions.mT @ affinity).log_()
    for _ in range(ITERATIONS):
        totals = _class_totals(affinity, proportions) + added * n_query / ways
        proportions = totals / (n_query * (1 + added))
    gain = (proportions.mT @ affinity).log_().sub_(balanced)
    return proportions, gain.sum(dim=-1, keepdim=True).clamp_min_(0)


def balance_exactly(logits: Tensor, potentials: Tensor) -> tuple[Tensor, Tensor]:
    """Balanced log-probabilities and their potentials (float64), started from `potentials`.

    Sinkhorn's algorithm takes hundreds of iterations where the classes are distinct. The potentials
    maximize the concave

        sum_k n_query / ways potential_k - sum_i logsumexp_k(logit_ik + potential_k),

    so that Newton's method reaches the same assignment in a few steps.
    """
    exact = logits.double()  # the objective is a difference of large sums
    target = logits.shape[2] / logits.shape[1]
    log_p, value = _objective(exact, potentials, target)
    damping = torch.full_like(value, _DAMPING)
    for _ in range(_MAX_NEWTON_STEPS):
        p = log_p.exp()
        residual = target - p.sum(dim=2, keepdim=True)
        largest = residual.abs().amax(dim=1, keepdim=True)
        if float(largest.max()) <= _TOLERANCE:
            break
        trial = potentials + _newton_step(p, residual, damping * largest.clamp(min=_TOLERANCE))
        trial_log_p, trial_value = _objective(exact, trial, target)
        accept = trial_value >= value - 1e-12 * value.abs()
        # After a rejected step the next one is damped more.
        damping = torch.where(accept, _DAMPING, 100 * damping)
        potentials = torch.where(accept, trial, potentials)
        log_p = torch.where(accept, trial_log_p, log_p)
        value = torch.where(accept, trial_value, value)
    return log_p.to(logits.dtype), potentials


def _affinity(logits: Tensor) -> Tensor:
    """exp(logits), relative to each query's largest."""
    return (logits - logits.amax(dim=-2, keepdim=True)).exp_()


def _class_totals(affinity: Tensor, factors: Tensor) -> Tensor:
    """Expected number of queries per class, (tasks, ways, 1)."""
    return factors * (affinity @ (factors.mT @ affinity).reciprocal_().mT)


def _objective(logits: Tensor, potentials: Tensor, target: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities, and the value of the concave objective, (tasks, 1, 1)."""
    logits = logits + potentials
    totals = torch.logsumexp(logits, dim=1, keepdim=True)
    value = target * potentials.sum(dim=1, keepdim=True) - totals.sum(dim=2, keepdim=True)
    return logits.sub_(totals), value


def _newton_step(p: Tensor, residual: Tensor, damping: Tensor) -> Tensor:
    """Change of the potentials, (tasks, ways, 1)."""
    hessian = p @ p.mT
    hessian.neg_().diagonal(dim1=1, dim2=2).add_((p.sum(dim=2, keepdim=True) + damping)[..., 0])
    step: Tensor = torch.linalg.solve(hessian, residual)
    return step * (_MAX_CHANGE / step.abs().amax(dim=1, keepdim=True)).clamp_(max=1.0)
