"""Slow reference implementation of transductive fine-tuning of a whole network, in float64.

The network is the smallest that has what matters: a 3 x 3 convolution without padding, batch norm,
ReLU, and the map as the feature. Convolution, batch norm, losses and Adam are implemented here,
gradients are autograd's. Nothing is imported from `protorect`.
"""

from __future__ import annotations

import torch

EPSILON, MOMENTUM = 1e-5, 0.1  # of torch's batch norm


def tft(
    start,
    support,
    labels,
    query,
    ways,
    *,
    iterations=25,
    learning_rate=5e-5,
    scale=1.0,
    entropy=1.0,
    statistics="training",
    layer="features",
    updates="together",
):
    """Logits of the queries (n_query, ways).

    `start` has the network's `kernel` (maps, 1, 3, 3), `gain`, `offset`, `mean` and `variance`
    (maps,); if the layer is on the logits, the base classifier's `base` (classes, dim) and `tau`.
    Pictures are (n, 1, height, width).
    """
    mean, variance = start["mean"].clone(), start["variance"].clone()

    def inputs(pictures, kernel, gain, offset, *base, learn):
        """What the new layer is on, before it is normalized."""
        nonlocal mean, variance
        maps = convolved(pictures, kernel)
        used = mean, variance
        if learn:
            values = maps.movedim(1, 0).flatten(1)  # (maps, everything)
            used = values.mean(1), ((values - values.mean(1, keepdim=True)) ** 2).mean(1)
            count = values.shape[1]
            mean = (1 - MOMENTUM) * mean + MOMENTUM * used[0].detach()
            unbiased = used[1].detach() * count / (count - 1)
            variance = (1 - MOMENTUM) * variance + MOMENTUM * unbiased
        rows = []
        for one in maps:
            normed = [
                gain[m] * (one[m] - used[0][m]) / (used[1][m] + EPSILON) ** 0.5 + offset[m]
                for m in range(len(one))
            ]
            row = torch.stack(normed).clamp(min=0).flatten()
            if base:  # Dhillon et al. 2020, eq. (7): the rectified logits of the base classes
                cosines = [(row / row.norm()) @ (w / w.norm()) for w in base[0]]
                row = (base[1] * torch.stack(cosines)).clamp(min=0)
            rows.append(row)
        return torch.stack(rows)

    network = [start["kernel"], start["gain"], start["offset"]]
    if layer == "logits":
        network += [start["base"], start["tau"]]
    known = inputs(support, *network, learn=False)
    if layer == "features":
        known = unit(known)
    heads = unit(torch.stack([known[labels == k].mean(0) for k in range(ways)]))
    weights = [
        one.clone().requires_grad_() for one in (*network, heads, torch.zeros(ways).double())
    ]
    first = [torch.zeros_like(one) for one in weights]
    second = [torch.zeros_like(one) for one in weights]

    def logits(pictures, learn):
        *network, heads, biases = weights
        return scale * (unit(inputs(pictures, *network, learn=learn)) @ heads.T + biases)

    def support_loss():
        loss = 0.0
        for scores, label in zip(logits(support, statistics == "task"), labels, strict=True):
            loss = loss - (scores[label] - scores.logsumexp(0)) / len(support)
        return loss

    def query_loss():
        loss = 0.0
        for scores in logits(query, statistics == "task"):
            p = scores.softmax(0)
            loss = loss - entropy * sum(p[k] * p[k].log() for k in range(ways)) / len(query)
        return loss

    def both():
        return support_loss() + query_loss()

    terms = [both] if updates == "together" else [support_loss, query_loss]
    for step, term in enumerate(iterations * terms, start=1):
        loss = term()
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient, m, v in zip(weights, gradients, first, second, strict=True):
                m.copy_(0.9 * m + 0.1 * gradient)
                v.copy_(0.999 * v + 0.001 * gradient**2)
                corrected = (v / (1 - 0.999**step)) ** 0.5
                weight -= learning_rate * m / (1 - 0.9**step) / (corrected + 1e-8)
    return logits(query, learn=False).detach()


def unit(rows):
    """Rows of length one; rectified logits may all be zero, and stay so."""
    return torch.stack([row / row.norm() if row.norm() > 0 else row for row in rows])


def convolved(pictures, kernel):
    n, _, height, width = pictures.shape
    out = torch.empty(n, len(kernel), height - 2, width - 2, dtype=pictures.dtype)
    maps = [
        (pictures[:, 0, y : y + 3, x : x + 3].unsqueeze(1) * kernel[:, 0]).sum((2, 3))
        for y in range(out.shape[2])
        for x in range(out.shape[3])
    ]
    return torch.stack(maps, dim=2).view(out.shape)
