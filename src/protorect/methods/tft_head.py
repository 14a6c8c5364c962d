"""Transductive fine-tuning of a classifier on fixed features.

Guneet S. Dhillon, Pratik Chaudhari, Avinash Ravichandran, Stefano Soatto: "A Baseline for Few-Shot
Image Classification", ICLR 2020.

A linear layer on unit-length features starts from the support: its rows are the class means at unit
length and its biases 0, so that the logits are cosines at first. It then minimizes the mean
cross-entropy of the support, by its labels, plus the mean Shannon entropy of the queries. The paper
fine-tunes the whole network in the same way (`tft`); here the features are fixed.

Assumes that the support alone separates the classes well: minimizing the entropy sharpens the
predictions that are there.
"""

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.core.functional import normalize
from protorect.methods._solvers.adam import Adam, logit_gradient
from protorect.methods._solvers.blocks import Block, BlockSolution, blockwise, class_mean_weights
from protorect.methods.method import register
from protorect.methods.rules import LinearRule


class TftHeadOptions(Parameters):
    """Options of transductive fine-tuning; the defaults are those of the paper."""

    iterations: int = parameter(
        25, "Number of Adam steps, each on all samples of the task.", aliases=("steps",)
    )
    learning_rate: float = parameter(5e-5, "Step size of Adam.")
    scale: float = parameter(1.0, "Factor of the logits before the softmax.")
    entropy: float = parameter(1.0, "Weight of the queries' entropy; 0: the support alone counts.")


@register("tft-head", TftHeadOptions(), "transductive", "head fine-tuned on support and queries")
@blockwise(in_cache=True)
def tft_head(block: Block, options: TftHeadOptions) -> BlockSolution:
    """Logits."""
    samples, members, scale = block.samples, block.members, options.scale
    n_support, n_query = block.n_support, block.n_unlabeled
    weights = normalize(class_mean_weights(members) @ samples[:, :n_support])  # (tasks, ways, dim)
    biases = weights.new_zeros(*weights.shape[:2], 1)
    samples *= scale

    def query_gradient(p: Tensor, logits: Tensor, out: Tensor) -> None:
        torch.mul(logits, -options.entropy, out=out)

    optimizers = Adam(weights, options.learning_rate), Adam(biases, options.learning_rate)
    logits = torch.baddbmm(biases, weights, samples.mT, beta=scale)
    gradient_of_logits = logit_gradient(logits, members, 1.0, query_gradient)
    for _ in range(options.iterations if n_query else 0):
        by_logits = gradient_of_logits()
        optimizers[0].step(torch.baddbmm(weights, by_logits, samples, beta=0, alpha=1 / n_query))
        optimizers[1].step(by_logits.sum(dim=-1, keepdim=True) * (scale / n_query))
        torch.baddbmm(biases, weights, samples.mT, beta=scale, out=logits)
    return logits[..., n_support:], lambda: LinearRule(scale * weights, scale * biases[..., 0])
