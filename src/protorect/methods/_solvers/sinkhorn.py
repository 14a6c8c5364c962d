"""How queries are shared out among the classes.

A query goes to each class with a probability in proportion to odds of the class times its affinity
to the class, exp(sharpness cosine). Two rules for the odds, each a few products of the affinities
with a vector:

* every class gets as many queries (Sinkhorn's algorithm: Cuturi, "Sinkhorn Distances", NeurIPS
  2013; `transport` finds the odds exactly, a few rounds are enough for what is shared out again);
* the proportions under which the queries are most likely, by expectation and maximisation.
"""

from __future__ import annotations

import torch
from torch import Tensor

ROUNDS = 8  # of either rule


def shared_equally(scores: Tensor, sharpness: float) -> Tensor:
    """Probabilities of scores (tasks, ways, n_query) under which classes get about as many."""
    affinity = _affinities(scores, sharpness)
    odds = _equal_odds(affinity)
    return (affinity * odds).div_(odds.mT @ affinity)


def equal_potentials(scores: Tensor, sharpness: float) -> Tensor:
    """What `shared_equally` adds to the scores of each class, (tasks, ways, 1)."""
    return _equal_odds(_affinities(scores, sharpness)).log_() / sharpness


def evidence_of_unequal_classes(scores: Tensor, sharpness: float) -> Tensor:
    """How much more likely the queries are under proportions of their own, (tasks, 1, 1).

    The logarithm of the ratio of two likelihoods: under the likeliest proportions, and under equal
    ones. Never below 0.
    """
    affinity = _affinities(scores, sharpness)
    ways, n_query = affinity.shape[-2:]
    odds = torch.full_like(affinity[..., :1], 1 / ways)
    under_equal = (odds.mT @ affinity).log_()
    for _ in range(ROUNDS):
        odds = _claims(affinity, odds) / n_query
    gained = (odds.mT @ affinity).log_().sub_(under_equal)
    return gained.sum(dim=-1, keepdim=True).clamp_min_(0)


def _affinities(scores: Tensor, sharpness: float) -> Tensor:
    """Against the nearest class of each query, (tasks, ways, n_query)."""
    exponents = sharpness * scores
    return exponents.sub_(exponents.amax(dim=-2, keepdim=True)).exp_()


def _equal_odds(affinity: Tensor) -> Tensor:
    """Odds (tasks, ways, 1) under which every class gets n_query / ways, about."""
    smallest = torch.finfo(affinity.dtype).tiny ** 0.5
    odds = torch.ones_like(affinity[..., :1])
    for _ in range(ROUNDS):
        odds = odds / _claims(affinity, odds).clamp_min_(smallest)
        odds = (odds / odds.amax(dim=-2, keepdim=True)).clamp_min_(smallest)  # ratios count
    return odds


def _claims(affinity: Tensor, odds: Tensor) -> Tensor:
    """How many queries each class gets, (tasks, ways, 1)."""
    return odds * (affinity @ (odds.mT @ affinity).reciprocal_().mT)
