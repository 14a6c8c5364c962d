"""TIM-ADM: transductive information maximisation in closed alternating steps.

Malik Boudiaf, Imtiaz Masud Ziko, Jérôme Rony, José Dolz, Pablo Piantanida, Ismail Ben Ayed:
"Transductive Information Maximization For Few-Shot Learning", NeurIPS 2020, proposition 1.

The objective of TIM with targets q for the queries in place of their probabilities p, and a penalty
that ties the two. Targets and prototypes are found in turn, each in closed form.

Assumes that the queries hold the classes in equal parts, as TIM does.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect._utils.parameters import check_number, check_whole
from protorect.core.functional import Features
from protorect.methods._solvers.blocks import blocks
from protorect.methods._solvers.gram import ROOM, Span, span_of


@dataclass(frozen=True)
class TimAdmOptions:
    """The choices of TIM-ADM; the defaults are those of the paper.

    Parameters
    ----------
    iterations
        How often targets and prototypes are found in turn.
    temperature
        tau, the sharpness of the softmax.
    cross_entropy
        lambda, the weight of the support's cross-entropy; above 0.
    marginal
        The weight of H(Y), which pulls the classes towards equal parts of the queries.
    conditional
        alpha, the weight of H(Y | X), which makes each query certain.
    """

    iterations: int = 150
    temperature: float = 15.0
    cross_entropy: float = 0.1
    marginal: float = 1.0
    conditional: float = 0.1

    def __post_init__(self) -> None:
        check_whole("iterations", self.iterations)
        check_number("cross_entropy", self.cross_entropy, least=1e-6)
        for name in ("temperature", "marginal", "conditional"):
            check_number(name, getattr(self, name))


@torch.no_grad()
def tim_adm(
    support: Features, labels: Tensor, query: Features, ways: int, options: TimAdmOptions
) -> Tensor:
    """Logarithms of the queries' probabilities (tasks, n_query, ways)."""
    parts = blocks(support, labels, query, ways, ROOM)
    return torch.cat([_alternate(span_of(samples), members, options) for samples, members in parts])


def _alternate(span: Span, members: Tensor, options: TimAdmOptions) -> Tensor:
    n_support = members.shape[-1]
    n_query = span.n - n_support
    # What a sample of the support and a query weigh
    weights = members.new_full((span.n,), n_support / n_query)
    weights[:n_support] = options.cross_entropy / (1 + options.conditional)
    prototypes = span.class_means(members)
    for _ in range(options.iterations):
        log_p = _log_probabilities(span, prototypes, options.temperature)
        targets = torch.cat([members, _targets(log_p[..., n_support:], options)], dim=-1)
        targets *= weights
        p = log_p.exp_() * weights
        # w_k = sum_i (target_ik x_i + p_ik (w_k - x_i)) / sum_i target_ik, each times its weight
        prototypes *= p.sum(dim=-1, keepdim=True)
        prototypes += span.combined(targets - p)
        prototypes /= targets.sum(dim=-1, keepdim=True)
    return _log_probabilities(span, prototypes, options.temperature)[..., n_support:].mT


def _targets(log_p: Tensor, options: TimAdmOptions) -> Tensor:
    """q (tasks, ways, n_query): p^(1 + alpha), a class the less the more it has of it."""
    powers = (1 + options.conditional) * log_p
    claimed = torch.logsumexp(powers, dim=-1, keepdim=True)
    share = options.marginal / (1 + options.marginal)
    return torch.softmax(powers.sub_(claimed, alpha=share), dim=1)


def _log_probabilities(span: Span, prototypes: Tensor, temperature: float) -> Tensor:
    return torch.log_softmax(span.closeness(prototypes).mul_(temperature), dim=1)
