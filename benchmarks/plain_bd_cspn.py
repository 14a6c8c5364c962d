"""A straightforward batched implementation of BD-CSPN in torch, to compare speed with.

Equal shots; queries are gathered, normalized, shifted and normalized again in memory.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from protorect.evaluation.episodes import Episodes


def plain_bd_cspn(features: Tensor, episodes: Episodes, chunk: int = 500) -> Tensor:
    """Predicted class positions, (episodes, n_query)."""
    support, query = torch.from_numpy(episodes.support), torch.from_numpy(episodes.query)
    parts = zip(support.split(chunk), query.split(chunk), strict=True)
    return torch.cat([_predict(features[s], features[q]) for s, q in parts])


def _predict(support: Tensor, query: Tensor, z: int = 8, epsilon: float = 10.0) -> Tensor:
    support, query = normalize(support, dim=-1), normalize(query, dim=-1)  # (tasks, way, shot, dim)
    shift = support.mean(dim=(1, 2)) - query.mean(dim=1)
    query = normalize(query + shift[:, None], dim=-1)
    prototypes = normalize(support.mean(dim=2), dim=-1)  # (tasks, way, dim)
    scores = query @ prototypes.mT  # (tasks, n_query, way)
    predicted = one_hot(scores.argmax(dim=-1), scores.shape[-1]).bool()
    top = scores.masked_fill(~predicted, -torch.inf).topk(min(z, query.shape[1]), dim=1)
    chosen = query[torch.arange(len(query))[:, None, None], top.indices]  # (tasks, z, way, dim)
    samples = torch.cat([support, chosen.transpose(1, 2)], dim=2)  # (tasks, way, shot + z, dim)
    own = (support * prototypes[:, :, None]).sum(dim=-1)  # (tasks, way, shot)
    weights = torch.softmax(epsilon * torch.cat([own, top.values.mT], dim=2), dim=2)
    rectified = (weights[..., None] * samples).sum(dim=2)
    return (query @ normalize(rectified, dim=-1).mT).argmax(dim=-1)
