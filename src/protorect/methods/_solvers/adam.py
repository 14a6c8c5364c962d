"""What methods share that train a softmax head on the samples of each task by gradient descent.

A head is a few rows of weights, so its gradient is two products with the samples and some sums:
written out here, it costs a fraction of what recording and replaying the operations would.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# (probabilities, logits) of the queries and where to write the derivative of the objective by each
# probability, times the number of queries, all (tasks, ways, n_query). What is added to all classes
# of a query alike falls out, so that the logits are as good as the logarithms of the probabilities.
Slope = Callable[[Tensor, Tensor, Tensor], object]


def cached_bytes() -> int:
    """How much the tasks that are trained together may take.

    They are read at every step: what stays in the inner cache of each core is several times faster.
    """
    return torch.get_num_threads() * 2**21  # the usual size of that cache


class LogitGradient:
    """Derivative of an objective by the logits, with the room it is worked out in.

    The objective is the mean cross-entropy of the support times `cross_entropy`, and a term on the
    queries' probabilities p; `slope` writes its derivative by p. The logits (tasks, ways, n_support
    + n_query) stay in one place, where every step writes them anew.

    Objectives are means over the queries. What is given here are the derivatives of sums: those of
    the objective are `share` times these, a factor that a product with the samples takes along.
    """

    def __init__(self, logits: Tensor, members: Tensor, cross_entropy: float, slope: Slope) -> None:
        n_support, n_query = members.shape[-1], logits.shape[-1] - members.shape[-1]
        self.share = 1 / n_query
        self._logits, self._p = logits, torch.empty_like(logits)
        # p times the derivative by p, which for the support is that of its logarithm: a constant
        self._pull, self._gradient = torch.empty_like(logits), torch.empty_like(logits)
        self._pull[..., :n_support] = members * (-cross_entropy * n_query / n_support)
        self._mean_pull = torch.empty_like(logits[:, :1])
        self._of_queries = [part[..., n_support:] for part in (self._p, logits, self._pull)]
        self._slope = slope

    def now(self) -> Tensor:
        """The derivatives (tasks, ways, n_support + n_query), valid until the next call."""
        p, logits, pull = self._of_queries
        torch.softmax(self._logits, dim=1, out=self._p)
        self._slope(p, logits, pull)
        pull.mul_(p)
        # Through the softmax: dF/dlogit_k = p_k dF/dp_k - p_k sum_l p_l dF/dp_l
        torch.sum(self._pull, dim=1, keepdim=True, out=self._mean_pull)
        return torch.addcmul(self._pull, self._p, self._mean_pull, value=-1, out=self._gradient)


class Adam:
    """Adam (Kingma and Ba, 2015) on one tensor, in place.

    It treats every number on its own, so one for a batch of tasks is one for each task.
    """

    def __init__(self, weights: Tensor, learning_rate: float) -> None:
        self._weights = weights
        self._learning_rate = learning_rate
        self._steps = torch.zeros((), device=weights.device)
        self._one = torch.ones_like(self._steps)  # a number of Python's would be made a tensor anew
        self._mean = torch.zeros_like(weights)
        # Not quite 0, whose root takes twenty times as long; far below the 1e-8 that is added to it
        self._square = torch.full_like(weights, 1e-30)

    def step(self, gradient: Tensor) -> None:
        """Move the weights against the gradient."""
        self._steps += self._one
        # What torch.optim.Adam(fused=True) calls: one pass over the weights. The optimiser itself
        # takes longer to get there than the pass does.
        torch._fused_adam_(
            [self._weights],
            [gradient],
            [self._mean],
            [self._square],
            [],
            [self._steps],
            lr=self._learning_rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )
