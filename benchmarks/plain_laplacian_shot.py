"""A straightforward implementation of LaplacianShot in torch, to compare speed with.

One task after the other; the equations and options of `laplacian-shot`, equal shots.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize, one_hot

from protorect.evaluation.episodes import Episodes


def plain_laplacian_shot(features: Tensor, episodes: Episodes) -> Tensor:
    """Predicted class positions, (episodes, n_query)."""
    support, query = torch.from_numpy(episodes.support), torch.from_numpy(episodes.query)
    pairs = zip(support, query, strict=True)
    return torch.stack([_predict(features[s], features[q]) for s, q in pairs])


def _predict(
    support: Tensor, query: Tensor, weight: float = 1.0, neighbors: int = 2, iterations: int = 20
) -> Tensor:
    center = (support.mean(dim=(0, 1)) + query.mean(dim=0)) / 2
    support, query = (normalize(one - center, dim=-1) for one in (support, query))
    query = query + support.mean(dim=(0, 1)) - query.mean(dim=0)
    prototypes = _rectified(support, query)
    distances = torch.cdist(query, prototypes) ** 2  # (n_query, way)
    between = torch.cdist(query, query).fill_diagonal_(torch.inf)
    graph = torch.zeros_like(between)
    graph.scatter_(1, between.topk(min(neighbors, len(query) - 1), largest=False).indices, 1.0)
    shares = torch.softmax(-distances, dim=1)
    for _ in range(iterations):
        shares = torch.softmax(-distances + weight * graph @ shares, dim=1)
    return shares.argmax(dim=1)


def _rectified(support: Tensor, query: Tensor) -> Tensor:
    way, _, dim = support.shape
    prototypes = support.mean(dim=1)  # (way, dim)
    samples = torch.cat([support.reshape(-1, dim), query])
    cosines = cosine_similarity(samples[:, None], prototypes[None], dim=2)  # (n, way)
    members = one_hot(cosines.argmax(dim=1), way)
    weights = torch.softmax(10 * cosines, dim=1) * members
    counts = members.sum(dim=0)[:, None]
    return torch.where(counts > 0, weights.T @ samples / counts.clamp_min(1), prototypes)
