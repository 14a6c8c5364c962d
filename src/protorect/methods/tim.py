"""TIM-GD: transductive information maximisation by gradient descent.

Malik Boudiaf, Imtiaz Masud Ziko, Jérôme Rony, José Dolz, Pablo Piantanida, Ismail Ben Ayed:
"Transductive Information Maximization For Few-Shot Learning", NeurIPS 2020.

The prototypes w_k start as the means of the support and minimise

    lambda CE(support) - H(Y) + alpha H(Y | X)

where p_ik is the softmax over the classes of -tau/2 |w_k - x_i|^2, the cross-entropy CE is the mean
over the support, H(Y) the entropy of the queries' mean p, and H(Y | X) the mean of their entropies.

Assumes that the queries hold the classes in equal parts, which H(Y) rewards.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect.functional import Features
from protorect.methods.blocks import blocks, member_shares
from protorect.methods.descent import Adam, Slope, cached_bytes, logit_gradient
from protorect.options import check_number, check_whole


@dataclass(frozen=True)
class TimOptions:
    """The choices of TIM-GD; the defaults are those of the paper.

    Parameters
    ----------
    iterations
        How many steps of Adam.
    learning_rate
        The step size of Adam.
    temperature
        tau, the sharpness of the softmax.
    cross_entropy
        lambda, the weight of the support's cross-entropy.
    marginal
        The weight of H(Y), which pulls the classes towards equal parts of the queries.
    conditional
        alpha, the weight of H(Y | X), which makes each query certain.
    """

    iterations: int = 1000
    learning_rate: float = 1e-4
    temperature: float = 15.0
    cross_entropy: float = 0.1
    marginal: float = 1.0
    conditional: float = 0.1

    def __post_init__(self) -> None:
        check_whole("iterations", self.iterations)
        for name in ("learning_rate", "temperature", "cross_entropy", "marginal", "conditional"):
            check_number(name, getattr(self, name))


@torch.no_grad()
def tim(
    support: Features, labels: Tensor, query: Features, ways: int, options: TimOptions
) -> Tensor:
    """Logarithms of the queries' probabilities (tasks, n_query, ways)."""

    def slope(p: Tensor, log_p: Tensor) -> Tensor:
        n_query = p.shape[-1]
        marginal = p.mean(dim=-1, keepdim=True).clamp_(min=torch.finfo(p.dtype).tiny)
        return torch.sub(
            marginal.log_().mul_(options.marginal / n_query),
            log_p,
            alpha=options.conditional / n_query,
        )

    return descend(support, labels, query, ways, options, slope)


def descend(
    support: Features,
    labels: Tensor,
    query: Features,
    ways: int,
    options: TimOptions,
    slope: Slope,
) -> Tensor:
    """Prototypes by gradient descent on the cross-entropy and the term that `slope` derives."""
    parts = blocks(support, labels, query, ways, cached_bytes())
    return torch.cat([_descend(*part, options, slope) for part in parts])


def _descend(samples: Tensor, members: Tensor, options: TimOptions, slope: Slope) -> Tensor:
    prototypes = member_shares(members) @ samples[:, : members.shape[-1]]
    samples *= options.temperature
    logits = samples.new_empty(*prototypes.shape[:2], samples.shape[1])  # (tasks, ways, n)
    gradient = torch.empty_like(prototypes)
    adam = Adam(prototypes, options.learning_rate)
    for _ in range(options.iterations):
        log_p = _log_probabilities(prototypes, samples, options.temperature, logits)
        pull = logit_gradient(log_p, members, options.cross_entropy, slope)
        # d logit_ik / d w_k = tau (x_i - w_k)
        torch.bmm(pull, samples, out=gradient)
        gradient.addcmul_(pull.sum(-1, keepdim=True), prototypes, value=-options.temperature)
        adam.step(gradient)
    log_p = _log_probabilities(prototypes, samples, options.temperature, logits)
    return log_p[..., members.shape[-1] :].mT


def _log_probabilities(
    prototypes: Tensor, samples: Tensor, temperature: float, logits: Tensor
) -> Tensor:
    """log p, (tasks, ways, n); the samples are given times tau, `logits` is room to work in."""
    torch.bmm(prototypes, samples.mT, out=logits)
    lengths = torch.linalg.vector_norm(prototypes, dim=-1, keepdim=True)
    logits.addcmul_(lengths, lengths, value=-temperature / 2)  # |x|^2 falls out of the softmax
    return torch.log_softmax(logits, dim=1)
