"""What methods share that train a softmax head on the samples of each task by gradient descent.

A head is a few rows of weights, so its gradient is two products with the samples and some sums:
written out here, it costs a fraction of what recording and replaying the operations would.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# (probabilities, their logarithms) of the queries, (tasks, ways, n_query) -> the derivative of the
# objective by each probability, in the same shape
Slope = Callable[[Tensor, Tensor], Tensor]


def cached_bytes() -> int:
    """How much the tasks that are trained together may take.

    They are read at every step: what stays in the inner cache of each core is several times faster.
    """
    return torch.get_num_threads() * 5 * 2**18


def logit_gradient(log_p: Tensor, members: Tensor, cross_entropy: float, slope: Slope) -> Tensor:
    """Derivative of the objective by the logits, (tasks, ways, n_support + n_query).

    The objective is the mean cross-entropy of the support times `cross_entropy`, and the term on
    the queries' probabilities p whose derivative by p is `slope`. The logarithms of all
    probabilities are `log_p`, of that shape.
    """
    n_support = members.shape[-1]
    gradient = log_p.exp()
    of_support, of_query = gradient[..., :n_support], gradient[..., n_support:]
    of_support.sub_(members).mul_(cross_entropy / n_support)
    # Through the softmax: dF/dlogit_k = p_k (dF/dp_k - sum_l p_l dF/dp_l)
    slopes = slope(of_query, log_p[..., n_support:])
    of_query.mul_(slopes.sub_((of_query * slopes).sum(dim=1, keepdim=True)))
    return gradient


class Adam:
    """Adam (Kingma and Ba, 2015) on one tensor, in place.

    It treats every number on its own, so one for a batch of tasks is one for each task.
    """

    def __init__(self, weights: Tensor, learning_rate: float) -> None:
        self._weights = weights
        self._learning_rate = learning_rate
        self._steps = 0
        self._mean = torch.zeros_like(weights)
        self._square = torch.zeros_like(weights)
        self._room = torch.empty_like(weights)

    def step(self, gradient: Tensor) -> None:
        """Move the weights against the gradient."""
        self._steps += 1
        first, second = 1 - 0.9**self._steps, (1 - 0.999**self._steps) ** 0.5
        self._mean.lerp_(gradient, 0.1)
        self._square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        spread = torch.sqrt(self._square, out=self._room).add_(1e-8 * second)
        self._weights.addcdiv_(self._mean, spread, value=-self._learning_rate * second / first)
