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
    return torch.get_num_threads() * 1_700_000  # of the usual 2 MiB


class LogitGradient:
    """Derivative of an objective by the logits, with the room it is worked out in.

    The objective is the mean cross-entropy of the support times `cross_entropy`, and a term on the
    queries' probabilities p whose derivative by p is `slope`, but for what is added to all classes
    of a query alike.
    """

    def __init__(self, logits: Tensor, members: Tensor, cross_entropy: float, slope: Slope) -> None:
        n_support = members.shape[-1]
        self._members = members
        self._weight = cross_entropy / n_support
        self._slope = slope
        self._log_p = torch.empty_like(logits)
        self._log_query = self._log_p[..., n_support:]
        self._gradient = torch.empty_like(logits)
        self._support = self._gradient[..., :n_support]
        self._query = self._gradient[..., n_support:]

    def at(self, logits: Tensor) -> Tensor:
        """The derivative (tasks, ways, n_support + n_query), valid until the next is asked for."""
        torch.log_softmax(logits, dim=1, out=self._log_p)
        torch.exp(self._log_p, out=self._gradient)
        self._support.sub_(self._members).mul_(self._weight)
        # Through the softmax: dF/dlogit_k = p_k (dF/dp_k - sum_l p_l dF/dp_l)
        slopes = self._slope(self._query, self._log_query)
        slopes -= (self._query * slopes).sum(dim=1, keepdim=True)
        self._query.mul_(slopes)
        return self._gradient


class Adam:
    """Adam (Kingma and Ba, 2015) on one tensor, in place.

    It treats every number on its own, so one for a batch of tasks is one for each task.
    """

    def __init__(self, weights: Tensor, learning_rate: float) -> None:
        self._weights = weights
        self._learning_rate = learning_rate
        self._steps = 0
        self._mean = torch.zeros_like(weights)
        # Not quite 0, whose root takes twenty times as long; far below the 1e-8 that is added to it
        self._square = torch.full_like(weights, 1e-30)
        self._room = torch.empty_like(weights)

    def step(self, gradient: Tensor) -> None:
        """Move the weights against the gradient."""
        self._steps += 1
        first, second = 1 - 0.9**self._steps, (1 - 0.999**self._steps) ** 0.5
        self._mean.lerp_(gradient, 0.1)
        self._square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        spread = torch.sqrt(self._square, out=self._room).add_(1e-8 * second)
        self._weights.addcdiv_(self._mean, spread, value=-self._learning_rate * second / first)
