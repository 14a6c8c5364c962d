"""Transductive fine-tuning of a classifier on fixed features.

Guneet S. Dhillon, Pratik Chaudhari, Avinash Ravichandran, Stefano Soatto: "A Baseline for Few-Shot
Image Classification", ICLR 2020.

A linear layer on features of length one starts from the support: its rows are the classes' means at
length one and its biases 0, so that the logits are cosines at first. It then minimises the mean
cross-entropy of the support plus the mean Shannon entropy of the queries. The paper fine-tunes the
whole network in the same way; here the features stay as they are.

Assumes that the support alone separates the classes well: entropy sharpens what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protorect._utils.parameters import check_number, check_whole
from protorect.core.functional import Features, normalize
from protorect.methods._solvers.adam import Adam, LogitGradient, cached_bytes
from protorect.methods._solvers.blocks import blocks, member_shares


@dataclass(frozen=True)
class TftHeadOptions:
    """The choices of transductive fine-tuning of the head; the defaults are those of the paper.

    Parameters
    ----------
    steps
        Of Adam, each on all samples of the task.
    learning_rate
        The step size of Adam.
    scale
        What the logits are multiplied by before the softmax.
    entropy
        The weight of the queries' entropy; 0 fine-tunes on the support alone.
    """

    steps: int = 25
    learning_rate: float = 5e-5
    scale: float = 1.0
    entropy: float = 1.0

    def __post_init__(self) -> None:
        check_whole("steps", self.steps)
        for name in ("learning_rate", "scale", "entropy"):
            check_number(name, getattr(self, name))


@torch.no_grad()
def tft_head(
    support: Features, labels: Tensor, query: Features, ways: int, options: TftHeadOptions
) -> Tensor:
    """Logits of the queries (tasks, n_query, ways)."""
    parts = blocks(support, labels, query, ways, cached_bytes())
    return torch.cat([_fine_tuned(*part, options) for part in parts])


def _fine_tuned(samples: Tensor, members: Tensor, options: TftHeadOptions) -> Tensor:
    n_support = members.shape[-1]
    weights = normalize(member_shares(members) @ samples[:, :n_support])  # (tasks, ways, dim)
    biases = weights.new_zeros(*weights.shape[:2], 1)
    samples *= options.scale

    def slope(p: Tensor, logits: Tensor, out: Tensor) -> None:
        torch.mul(logits, -options.entropy, out=out)

    optimisers = [Adam(parameters, options.learning_rate) for parameters in (weights, biases)]
    logits = torch.baddbmm(biases, weights, samples.mT, beta=options.scale)
    pull = LogitGradient(logits, members, 1.0, slope)
    for _ in range(options.steps):
        by_logits = pull.now()
        by_weights = torch.baddbmm(weights, by_logits, samples, beta=0, alpha=pull.share)
        by_biases = by_logits.sum(dim=-1, keepdim=True) * (options.scale * pull.share)
        for adam, gradient in zip(optimisers, (by_weights, by_biases), strict=True):
            adam.step(gradient)
        torch.baddbmm(biases, weights, samples.mT, beta=options.scale, out=logits)
    return logits[..., n_support:].mT
