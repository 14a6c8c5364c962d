"""alpha-TIM: TIM with the mutual information of the alpha-divergence.

Olivier Veilleux, Malik Boudiaf, Pablo Piantanida, Ismail Ben Ayed: "Realistic Evaluation of
Transductive Few-Shot Learning", NeurIPS 2021.

The entropies of the queries become H_a(p) = (1 - sum_k p_k^a) / (a - 1), which is Shannon's in the
limit a -> 1. The larger a is, the more unequal the queries' classes may be before the marginal
entropy pulls on them. The support keeps its cross-entropy.

Assumes that every class has some queries, not that all have as many.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect._utils.parameters import check_number
from protorect.core.functional import Features
from protorect.methods.tim import TimOptions, descend

_FEW, _MANY = 1, 5  # shots for which the paper gives alpha


@dataclass(frozen=True)
class AlphaTimOptions(TimOptions):
    """The choices of alpha-TIM; those of TIM with equal weights, and alpha by the shots.

    Parameters
    ----------
    iterations
        How many steps of Adam.
    learning_rate
        The step size of Adam.
    temperature
        tau, the sharpness of the softmax.
    cross_entropy
        The weight of the support's cross-entropy.
    marginal
        The weight of the marginal entropy, which pulls the classes towards equal parts.
    conditional
        The weight of the queries' own entropies, which makes each query certain.
    alpha
        Of the divergence in tasks of one labelled sample a class; above 1.
    alpha_many
        The same from five labelled samples a class up; in between it grows evenly.
    """

    cross_entropy: float = 1.0
    marginal: float = 1.0
    conditional: float = 1.0
    alpha: float = 2.0
    alpha_many: float = 7.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha, least=1.01, most=100.0)
        check_number("alpha_many", self.alpha_many, least=1.01, most=100.0)

    def alpha_of(self, shots: float) -> float:
        """Alpha for so many labelled samples a class on average."""
        share = min(max((shots - _FEW) / (_MANY - _FEW), 0.0), 1.0)
        return (1 - share) * self.alpha + share * self.alpha_many


@torch.no_grad()
def alpha_tim(
    support: Features, labels: Tensor, query: Features, ways: int, options: AlphaTimOptions
) -> Tensor:
    """Logarithms of the queries' probabilities (tasks, n_query, ways)."""
    alpha = options.alpha_of(labels.shape[-1] / ways)
    factor = alpha / (alpha - 1)
    exponents = fast_exponents(alpha - 1)

    def slope(p: Tensor, logits: Tensor, out: Tensor) -> None:
        mean = p.mean(dim=-1, keepdim=True)
        marginal = _power(mean, exponents, mean).mul_(options.marginal * factor)
        powers = _power(p, exponents, out)
        torch.sub(marginal, powers, alpha=options.conditional * factor, out=out)

    return descend(support, labels, query, ways, options, slope)


def _power(p: Tensor, exponents: list[float], room: Tensor) -> Tensor:
    """p to these exponents, one after the other, written where there is room if not p itself."""
    for exponent in exponents:
        if exponent != 1:
            p = torch.pow(p, exponent, out=room)
    return p


def fast_exponents(exponent: float) -> list[float]:
    """Exponents that make up this one: squares and cubes take a tenth of any other power."""
    found: list[float] = []
    for fast in (2, 3):
        while exponent % fast == 0:
            found.append(fast)
            exponent /= fast
    return [exponent, *found] if exponent != 1 or not found else found
