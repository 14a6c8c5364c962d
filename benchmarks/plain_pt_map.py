"""A straightforward implementation of PT-MAP in torch, to compare speed with.

One task after the other, with Sinkhorn's algorithm; for non-negative features.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from protorect.evaluation.episodes import Episodes


def plain_pt_map(features: Tensor, episodes: Episodes) -> Tensor:
    """Predicted class positions, (episodes, n_query)."""
    labels = torch.arange(episodes.way).repeat_interleave(episodes.shot)
    pairs = zip(
        torch.from_numpy(episodes.support).flatten(1),
        torch.from_numpy(episodes.query),
        strict=True,
    )
    return torch.stack([_predict(features[s], labels, features[q]) for s, q in pairs])


def _predict(support: Tensor, labels: Tensor, query: Tensor) -> Tensor:
    support, query = _transformed(support), _transformed(query)
    members = one_hot(labels).to(support.dtype)
    samples = torch.cat([support, query])
    centres = (members.T @ support) / members.sum(0)[:, None]
    for _ in range(20):
        assigned = torch.cat([members, _assigned(query, centres)])
        means = (assigned.T @ samples) / assigned.sum(0)[:, None]
        centres = centres + 0.2 * (means - centres)
    return _assigned(query, centres).argmax(1)


def _transformed(features: Tensor) -> Tensor:
    features = normalize((normalize(features, dim=-1) + 1e-6) ** 0.5, dim=-1)
    return normalize(features - features.mean(0), dim=-1)


def _assigned(query: Tensor, centres: Tensor, sharpness: float = 10.0) -> Tensor:
    """Sinkhorn's algorithm: every query once, every class equally often."""
    p = torch.exp(-sharpness * torch.cdist(query, centres) ** 2)
    p = p / p.sum()
    before = torch.zeros(len(query))
    for _ in range(1000):
        sums = p.sum(1)
        if (sums - before).abs().max() <= 1e-6:
            break
        before = sums
        p = p / sums[:, None]
        p = p * (len(query) / p.shape[1] / p.sum(0))
    return p
