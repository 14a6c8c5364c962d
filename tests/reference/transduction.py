"""Slow reference implementations of transductive methods: one task at a time, float64.

Losses are as the papers print them, gradients are autograd's, the optimizer is torch's Adam,
optimal transport is Sinkhorn's algorithm until convergence. Nothing is imported from `protorect`.

A task is support (n_support, dim), labels (n_support,), query (n_query, dim), all float64 tensors.
Functions return the queries' log-probabilities (n_query, ways), or logits for `tft_head`; with
`new`, those of these samples (up to a constant per sample) after a fit to the others.

What the papers leave open:

* features are normalized first, and a zero vector stays zero;
* alpha of alpha-TIM between one and five shots is linear in the mean shots;
* the power of a negative number is minus the power of its absolute value;
* with fewer queries than classes, PT-MAP centers the queries on the support's mean and assigns each
  of them independently.
"""

from __future__ import annotations

import numpy as np
import torch


def unit(rows):
    lengths = rows.norm(dim=1, keepdim=True)
    return torch.where(lengths > 0, rows / lengths, torch.zeros_like(rows))


def means(support, labels, ways):
    return torch.stack([support[labels == k].mean(0) for k in range(ways)])


def euclidean_log_p(samples, prototypes, scale):
    """p_ik ~ exp(-tau/2 |x_i - w_k|^2)"""
    distances = ((samples[:, None] - prototypes) ** 2).sum(2)
    return (-scale / 2 * distances).log_softmax(1)


def cross_entropy(log_p, labels):
    return -log_p[torch.arange(len(labels)), labels].mean()


def shannon(p):
    return -(p * p.log()).sum(-1)


def tsallis(p, alpha):
    return (1 - (p**alpha).sum(-1)) / (alpha - 1)


def by_adam(parameters, loss, iterations, learning_rate):
    parameters = [x.clone().requires_grad_() for x in parameters]
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    for _ in range(iterations):
        optimizer.zero_grad()
        loss(*parameters).backward()
        optimizer.step()
    return [x.detach() for x in parameters]


def tim(
    support,
    labels,
    query,
    ways,
    *,
    iterations=1000,
    learning_rate=1e-4,
    scale=15.0,
    weights=(0.1, 1.0, 0.1),
    entropy=shannon,
    new=None,
):
    """lambda CE - H(Y) + alpha H(Y | X), the three weights in this order."""
    support, query = unit(support), unit(query)

    def loss(prototypes):
        of_support = euclidean_log_p(support, prototypes, scale)
        p = euclidean_log_p(query, prototypes, scale).exp()
        return (
            weights[0] * cross_entropy(of_support, labels)
            - weights[1] * entropy(p.mean(0))
            + weights[2] * entropy(p).mean()
        )

    start = means(support, labels, ways)
    (prototypes,) = by_adam([start], loss, iterations, learning_rate)
    return euclidean_log_p(query if new is None else unit(new), prototypes, scale)


def alpha_tim(support, labels, query, ways, *, alpha=2.0, alpha_many=7.0, **others):
    shots = len(labels) / ways
    share = min(max((shots - 1) / 4, 0), 1)
    chosen = alpha + share * (alpha_many - alpha)
    others = {"weights": (1.0, 1.0, 1.0), **others}
    return tim(support, labels, query, ways, entropy=lambda p: tsallis(p, chosen), **others)


def tim_adm(
    support,
    labels,
    query,
    ways,
    *,
    iterations=150,
    scale=15.0,
    weights=(0.1, 1.0, 0.1),
    new=None,
):
    """Proposition 1: updates of targets q and prototypes w in turn."""
    support, query = unit(support), unit(query)
    w = means(support, labels, ways)
    ratio = len(support) / len(query)
    factor = weights[0] / (1 + weights[2])
    for _ in range(iterations):
        p_support = euclidean_log_p(support, w, scale).exp()
        p = euclidean_log_p(query, w, scale).exp()
        power = p ** (1 + weights[2])
        q = power / power.sum(0) ** (weights[1] / (1 + weights[1]))
        q = q / q.sum(1, keepdim=True)
        moved = []
        for k in range(ways):
            above, below = torch.zeros_like(w[k]), 0.0
            for i, x in enumerate(support):
                y = 1.0 if labels[i] == k else 0.0
                above = above + factor * (y * x + p_support[i, k] * (w[k] - x))
                below = below + factor * y
            for i, x in enumerate(query):
                above = above + ratio * (q[i, k] * x + p[i, k] * (w[k] - x))
                below = below + ratio * q[i, k]
            moved.append(above / below)
        w = torch.stack(moved)
    return euclidean_log_p(query if new is None else unit(new), w, scale)


def tft_head(
    support,
    labels,
    query,
    ways,
    *,
    iterations=25,
    learning_rate=5e-5,
    scale=1.0,
    entropy=1.0,
    new=None,
):
    support, query = unit(support), unit(query)

    def loss(rows, biases):
        of_support = (scale * (support @ rows.T + biases)).log_softmax(1)
        p = (scale * (query @ rows.T + biases)).softmax(1)
        return cross_entropy(of_support, labels) + entropy * shannon(p).mean()

    start = [unit(means(support, labels, ways)), torch.zeros(ways, dtype=support.dtype)]
    rows, biases = by_adam(start, loss, iterations, learning_rate)
    return scale * ((query if new is None else unit(new)) @ rows.T + biases)


def sinkhorn(costs, sharpness):
    """Balanced probabilities: normalize classes and queries in turn until convergence."""
    p = np.exp(-sharpness * (costs - costs.min(1, keepdim=True).values).numpy())
    count = p.shape[0] / p.shape[1]
    for _ in range(100_000):
        factors = count / p.sum(0)
        p = p * factors
        p = p / p.sum(1, keepdims=True)
        if abs(factors - 1).max() < 1e-10:
            break
    return torch.from_numpy(p)


def pt_map(
    support,
    labels,
    query,
    ways,
    *,
    power=0.5,
    sharpness=10.0,
    iterations=20,
    rate=0.2,
    proportions="equal",
    new=None,
):
    def transformed(rows):
        rows = unit(rows)
        signs = torch.where(rows < 0, -1.0, 1.0)
        return unit(signs * (rows.abs() + 1e-6) ** power)

    support, query = transformed(support), transformed(query)
    enough = len(query) >= ways
    center = query.mean(0) if enough else support.mean(0)
    support, query = unit(support - support.mean(0)), unit(query - center)

    def squared_distances(rows, centers):
        return torch.stack([((rows - c) ** 2).sum(1) for c in centers], dim=1)

    def assigned(centers):
        costs = squared_distances(query, centers)
        if enough and proportions == "equal":
            return sinkhorn(costs, sharpness)
        return (-sharpness * costs).softmax(1)

    centers = means(support, labels, ways)
    for _ in range(iterations):
        p = assigned(centers)
        moved = []
        for k in range(ways):
            own = support[labels == k]
            total = own.sum(0) + (p[:, k, None] * query).sum(0)
            estimate = total / (len(own) + p[:, k].sum())
            moved.append(centers[k] + rate * (estimate - centers[k]))
        centers = torch.stack(moved)
    if new is None:
        return assigned(centers).log()
    # What the assignment adds to the logits of a query, up to a constant, is the same for all.
    added = assigned(centers)[0].log() + sharpness * squared_distances(query[:1], centers)[0]
    return added - sharpness * squared_distances(unit(transformed(new) - center), centers)
