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
from protorect.methods._solvers.blocks import Block, BlockSolution, blockwise
from protorect.methods._solvers.gram import span_of
from protorect.methods.method import register
from protorect.methods.rules import DistanceRule
from protorect.methods.tim import InformationOptions


class TimAdmOptions(InformationOptions):
    """Options of TIM-ADM, where lambda is above 0; the defaults are those of the paper."""

    iterations: int = 150
    cross_entropy: float = parameter(0.1, minimum=1e-6)


@register(
    "tim-adm", TimAdmOptions(), "transductive", "as tim, by updates in closed form", uses_prior=True
)
@blockwise()
def tim_adm(block: Block, options: TimAdmOptions) -> BlockSolution:
    """Log-probabilities."""
    span, members, n_support = span_of(block.samples), block.members, block.n_support
    weights = members.new_full((span.n,), n_support / max(block.n_unlabeled, 1))
    weights[:n_support] = options.cross_entropy / (1 + options.conditional)
    prototypes = span.class_means(members)

    def log_probabilities() -> Tensor:
        """(tasks, ways, n), those of the unlabeled samples with the prior."""
        logits = span.squared_distances_by_class(prototypes).mul_(-options.scale / 2)
        if block.prior is not None:
            logits[..., n_support:] += block.prior
        return torch.log_softmax(logits, dim=1)

    for _ in range(options.iterations if block.n_unlabeled else 0):
        log_p = log_probabilities()
        targets = torch.cat([members, _targets(log_p[..., n_support:], options)], dim=-1)
        targets *= weights
        p = log_p.exp_() * weights
        # w_k = sum_i (target_ik x_i + p_ik (w_k - x_i)) / sum_i target_ik, each times its weight
        prototypes *= p.sum(dim=-1, keepdim=True)
        prototypes += span.combine(targets - p)
        prototypes /= targets.sum(dim=-1, keepdim=True)
    log_p = log_probabilities()[..., n_support:]
    return log_p, lambda: DistanceRule(span.vectors(prototypes), scale=options.scale / 2)


def _targets(log_p: Tensor, options: TimAdmOptions) -> Tensor:
    """q (tasks, ways, n_query): p^(1 + alpha), divided by a power of its sum over the queries."""
    powers = (1 + options.conditional) * log_p
    class_totals = torch.logsumexp(powers, dim=-1, keepdim=True)
    exponent = options.marginal / (1 + options.marginal)
    return torch.softmax(powers.sub_(class_totals, alpha=exponent), dim=1)
