"""TIM-GD: transductive information maximization by gradient descent.

Malik Boudiaf, Imtiaz Masud Ziko, Jérôme Rony, José Dolz, Pablo Piantanida, Ismail Ben Ayed:
"Transductive Information Maximization For Few-Shot Learning", NeurIPS 2020.

The prototypes w_k start as the class means of the support and minimize

    lambda CE(support) - H(Y) + alpha H(Y | X)

where p_ik is the softmax over the classes of -tau/2 |w_k - x_i|^2, the cross-entropy CE is the mean
over the support, H(Y) the entropy of the queries' mean p, and H(Y | X) the mean of their entropies.
Support samples count by their label, in the class means and in CE only.

From an earlier fit, a tenth of the iterations is taken, from its prototypes: where one label was
added, that is ten times as fast, and the accuracy is within a point of that of a new fit.

Assumes balanced classes among the queries, which H(Y) rewards.
"""

import torch
from torch import Tensor

from protorect._utils.parameters import Parameters, parameter
from protorect.methods._solvers.adam import Adam, QueryGradient, logit_gradient
from protorect.methods._solvers.blocks import Block, BlockSolution, blockwise, class_mean_weights
from protorect.methods.method import register
from protorect.methods.rules import DistanceRule

_WARM_START_DIVISOR = 10  # of the iterations, from prototypes of an earlier fit


class InformationOptions(Parameters):
    """Options of the mutual information, for all of its solvers."""

    iterations: int = parameter(1000, "Number of iterations of the solver.")
    scale: float = parameter(
        15.0,
        "tau, the factor of half the squared distances in the softmax.",
        aliases=("temperature",),
    )
    cross_entropy: float = parameter(0.1, "lambda, the weight of the support's cross-entropy.")
    marginal: float = parameter(1.0, "Weight of H(Y), the entropy that balanced classes maximize.")
    conditional: float = parameter(0.1, "alpha, the weight of H(Y | X), the queries' entropy.")


class TimOptions(InformationOptions):
    """Options of TIM-GD; the defaults are those of the paper."""

    learning_rate: float = parameter(1e-4, "Step size of Adam.")


@register(
    "tim",
    TimOptions(),
    "transductive",
    "prototypes that maximize the mutual information",
    uses_prior=True,
    uses_previous=True,
)
@blockwise(in_cache=True)
def tim(block: Block, options: TimOptions) -> BlockSolution:
    """Log-probabilities."""

    def query_gradient(p: Tensor, logits: Tensor, out: Tensor) -> None:
        # The logarithm of the sum is that of the mean up to a constant for all classes.
        marginal = p.sum(dim=-1, keepdim=True).clamp_(min=tiny).log_()
        if options.marginal != 1:
            marginal *= options.marginal
        torch.sub(marginal, logits, alpha=options.conditional, out=out)

    tiny = torch.finfo(block.samples.dtype).tiny
    return adapt_prototypes(block, options, query_gradient)


def adapt_prototypes(
    block: Block, options: TimOptions, query_gradient: QueryGradient
) -> BlockSolution:
    """Minimize the cross-entropy and the term on the queries over the prototypes, by Adam.

    Returns log-probabilities of the queries (tasks, ways, n_query) and the prototypes' rule.
    """
    samples, members, tau = block.samples, block.members, options.scale
    n_support, n_query = block.n_support, block.n_unlabeled
    prototypes = class_mean_weights(members) @ samples[:, :n_support]
    iterations = options.iterations if n_query else 0
    if isinstance(block.previous, DistanceRule):
        prototypes = block.previous.prototypes.to(samples.dtype, copy=True)
        iterations = -(-iterations // _WARM_START_DIVISOR)
    samples *= tau
    columns, gradient = samples.mT, torch.empty_like(prototypes)
    logits, per_class = prototypes @ columns, torch.empty_like(prototypes[..., :1])
    gradient_of_logits = logit_gradient(logits, members, options.cross_entropy, query_gradient)
    adam = Adam(prototypes, options.learning_rate)

    def update_logits() -> None:
        """-tau/2 |w - x|^2 up to the constant |x|^2; `columns` are times tau."""
        torch.bmm(prototypes, columns, out=logits)
        torch.linalg.vector_norm(prototypes, dim=-1, keepdim=True, out=per_class)
        logits.sub_(per_class.mul_(per_class), alpha=tau / 2)
        if block.prior is not None:
            logits[..., n_support:] += block.prior

    for _ in range(iterations):
        update_logits()
        by_logits = gradient_of_logits()
        # d logit_ik / d w_k = tau (x_i - w_k)
        torch.sum(by_logits, dim=-1, keepdim=True, out=per_class)
        torch.mul(prototypes, per_class, out=gradient)
        gradient.baddbmm_(by_logits, samples, beta=-tau / n_query, alpha=1 / n_query)
        adam.step(gradient)
    update_logits()
    log_p = torch.log_softmax(logits[..., n_support:], dim=1)
    return log_p, lambda: DistanceRule(prototypes, scale=tau / 2)
