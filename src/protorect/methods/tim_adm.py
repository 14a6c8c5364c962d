"""TIM-ADM: transductive information maximization by alternating direction updates.

Malik Boudiaf, Imtiaz Masud Ziko, Jérôme Rony, José Dolz, Pablo Piantanida, Ismail Ben Ayed:
"Transductive Information Maximization For Few-Shot Learning", NeurIPS 2020, proposition 1.

The objective of TIM with auxiliary targets q in place of the queries' probabilities p, and a
penalty that ties the two. Targets and prototypes are updated in turn, each in closed form.

Assumes balanced classes among the queries, as TIM does.
"""

import torch
from torch import Tensor

from protorect._utils.parameters import parameter
from protorect.methods._solvers.blocks import blockwise
from protorect.methods._solvers.gram import Span, span_of
from protorect.methods.method import register
from protorect.methods.tim import InformationOptions


class TimAdmOptions(InformationOptions):
    """Options of TIM-ADM, where lambda is above 0; the defaults are those of the paper."""

    iterations: int = 150
    cross_entropy: float = parameter(0.1, minimum=1e-6)


@register("tim-adm", TimAdmOptions(), "transductive", "as tim, by updates in closed form")
@blockwise()
def tim_adm(samples: Tensor, members: Tensor, options: TimAdmOptions) -> Tensor:
    """Log-probabilities of the queries."""
    span, n_support = span_of(samples), members.shape[-1]
    weights = members.new_full((span.n,), n_support / (span.n - n_support))
    weights[:n_support] = options.cross_entropy / (1 + options.conditional)
    prototypes = span.class_means(members)
    for _ in range(options.iterations):
        log_p = _log_probabilities(span, prototypes, options.temperature)
        targets = torch.cat([members, _targets(log_p[..., n_support:], options)], dim=-1)
        targets *= weights
        p = log_p.exp_() * weights
        # w_k = sum_i (target_ik x_i + p_ik (w_k - x_i)) / sum_i target_ik, each times its weight
        prototypes *= p.sum(dim=-1, keepdim=True)
        prototypes += span.combine(targets - p)
        prototypes /= targets.sum(dim=-1, keepdim=True)
    return _log_probabilities(span, prototypes, options.temperature)[..., n_support:].mT


def _targets(log_p: Tensor, options: TimAdmOptions) -> Tensor:
    """q (tasks, ways, n_query): p^(1 + alpha), divided by a power of its sum over the queries."""
    powers = (1 + options.conditional) * log_p
    class_totals = torch.logsumexp(powers, dim=-1, keepdim=True)
    exponent = options.marginal / (1 + options.marginal)
    return torch.softmax(powers.sub_(class_totals, alpha=exponent), dim=1)


def _log_probabilities(span: Span, prototypes: Tensor, temperature: float) -> Tensor:
    return torch.log_softmax(span.squared_distances(prototypes).mul_(-temperature / 2), dim=1)
