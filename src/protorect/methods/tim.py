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

from protorect._utils.parameters import check_number, check_whole
from protorect.core.functional import Features
from protorect.methods._solvers.adam import Adam, LogitGradient, Slope, cached_bytes
from protorect.methods._solvers.blocks import blocks, member_shares


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

    def slope(p: Tensor, logits: Tensor, out: Tensor) -> None:
        # The logarithm of the sum is that of the mean but for a number that all classes share.
        marginal = p.sum(dim=-1, keepdim=True).clamp_(min=tiny).log_()
        if options.marginal != 1:  # a call for nothing takes as long as any other
            marginal *= options.marginal
        torch.sub(marginal, logits, alpha=options.conditional, out=out)

    tiny = torch.finfo(torch.float32).tiny
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
    logits = Logits(prototypes, samples, options.temperature)
    pull = LogitGradient(logits.values, members, options.cross_entropy, slope)
    adam = Adam(prototypes, options.learning_rate)
    gradient, totals = torch.empty_like(prototypes), torch.empty_like(prototypes[..., :1])
    pulled, share = options.temperature * pull.share, pull.share
    for _ in range(options.iterations):
        logits.write()
        by_logits = pull.now()
        # d logit_ik / d w_k = tau (x_i - w_k)
        torch.sum(by_logits, dim=-1, keepdim=True, out=totals)
        torch.mul(prototypes, totals, out=gradient)
        adam.step(gradient.baddbmm_(by_logits, samples, beta=-pulled, alpha=share))
    logits.write()
    return torch.log_softmax(logits.values[..., members.shape[-1] :], dim=1).mT


class Logits:
    """-tau/2 |w - x|^2 but for |x|^2, (tasks, ways, n), of prototypes that are written anew.

    The samples are given times tau.
    """

    def __init__(self, prototypes: Tensor, samples: Tensor, temperature: float) -> None:
        self.values = samples.new_empty(*prototypes.shape[:2], samples.shape[1])
        self._prototypes, self._samples = prototypes, samples.mT
        self._lengths = torch.empty_like(prototypes[..., :1])
        self._temperature = temperature

    def write(self) -> None:
        """The values of the prototypes as they are now."""
        torch.bmm(self._prototypes, self._samples, out=self.values)
        lengths = self._lengths
        torch.linalg.vector_norm(self._prototypes, dim=-1, keepdim=True, out=lengths)
        self.values.sub_(lengths.mul_(lengths), alpha=self._temperature / 2)
