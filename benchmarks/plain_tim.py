"""A straightforward implementation of TIM-GD in torch, to compare speed with.

One task after the other, with autograd and torch's Adam; the iterations of `tim`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from protorect.evaluation.episodes import Episodes


@torch.inference_mode(False)  # it records gradients
def plain_tim(features: Tensor, episodes: Episodes, iterations: int = 1000) -> Tensor:
    """Predicted class positions, (episodes, n_query)."""
    labels = torch.arange(episodes.way).repeat_interleave(episodes.shot)
    pairs = zip(
        torch.from_numpy(episodes.support).flatten(1),
        torch.from_numpy(episodes.query),
        strict=True,
    )
    return torch.stack([_predict(features[s], labels, features[q], iterations) for s, q in pairs])


def _predict(support: Tensor, labels: Tensor, query: Tensor, iterations: int) -> Tensor:
    support, query = normalize(support, dim=-1), normalize(query, dim=-1)
    targets = one_hot(labels).to(support.dtype)
    prototypes = ((targets.T @ support) / targets.sum(0)[:, None]).requires_grad_()
    optimizer = torch.optim.Adam([prototypes], lr=1e-4)
    for _ in range(iterations):
        cross_entropy = -(targets * _logits(support, prototypes).log_softmax(1)).sum(1).mean()
        log_p = _logits(query, prototypes).log_softmax(1)
        marginal = log_p.exp().mean(0)
        marginal_entropy = -(marginal * marginal.log()).sum()
        conditional_entropy = -(log_p.exp() * log_p).sum(1).mean()
        optimizer.zero_grad()
        (0.1 * cross_entropy - marginal_entropy + 0.1 * conditional_entropy).backward()
        optimizer.step()
    return _logits(query, prototypes.detach()).argmax(1)


def _logits(samples: Tensor, prototypes: Tensor, scale: float = 15.0) -> Tensor:
    squares = (prototypes**2).sum(1) + (samples**2).sum(1)[:, None]
    return scale * (samples @ prototypes.T - squares / 2)
