"""Slow reference implementations of the baseline methods: one task, one sample at a time.

Each function was written from its paper, in float64 and without batches; none imports anything from
`protorect`. All take (support, labels, query, ways) and the options by name, and return the scores
(n_query, ways); with `new`, the scores of these samples after a fit to the others. What the papers
leave to training (scales, widths, penalties) has the library's default. A zero vector stays zero
when normalized.
"""

from __future__ import annotations

import math

import numpy as np
from sklearn.linear_model import LogisticRegression


def unit(x):
    length = math.sqrt(sum(float(value) ** 2 for value in x))
    return x / length if length > 0 else x


def table(features):
    return [np.array(row, dtype=np.float64) for row in features]


def units(features):
    return [unit(row) for row in table(features)]


def softmax(values):
    largest = max(values)
    powers = [math.exp(value - largest) for value in values]
    return [power / sum(powers) for power in powers]


def squared_distance(x, y):
    return float(sum((x - y) ** 2))


def own(samples, labels, n):
    return [x for x, label in zip(samples, labels, strict=True) if label == n]


def means(support, labels, ways):
    return [sum(own(support, labels, n)) / len(own(support, labels, n)) for n in range(ways)]


def minus_distances(query, prototypes):
    return np.array([[-squared_distance(x, p) for p in prototypes] for x in query])


def protonet(support, labels, query, ways):
    """Snell et al. 2017, eq. (1) and (2), the logits."""
    return minus_distances(table(query), means(table(support), labels, ways))


def simpleshot(support, labels, query, ways, center="none", base_mean=None):
    """Wang et al. 2019, section 3: UN features centered (C) and normalized (L2N)."""
    support, query = table(support), table(query)
    offset = np.zeros_like(support[0])
    if base_mean is not None:
        offset = np.array(base_mean, dtype=np.float64)
    elif center == "support":
        offset = sum(support) / len(support)
    support, query = [unit(x - offset) for x in support], [unit(x - offset) for x in query]
    return minus_distances(query, means(support, labels, ways))


def matching(support, labels, query, ways, scale=1.0):
    """Vinyals et al. 2016, eq. (1) with the attention of section 2.1.1."""
    support = units(support)
    scores = np.zeros((len(query), ways))
    for i, x in enumerate(units(query)):
        attention = softmax([scale * float(x @ s) for s in support])
        for weight, label in zip(attention, labels, strict=True):
            scores[i, label] += weight
    return scores


def ridge(support, labels, query, ways, penalty=1.0):
    """Bertinetto et al. 2019, section 3.2, in the dimensions of the features and a bias."""
    x = np.array([[*row, 1.0] for row in units(support)])
    y = np.array([[float(label == n) for n in range(ways)] for label in labels])
    weights = np.linalg.inv(x.T @ x + penalty * np.eye(x.shape[1])) @ x.T @ y
    return np.array([[*row, 1.0] for row in units(query)]) @ weights


def logistic(support, labels, query, ways, c=1.0):
    """Tian et al. 2020: scikit-learn's classifier on normalized features, until convergence."""
    # With two classes scikit-learn fits one weight vector w, the multinomial model w/2 and -w/2,
    # whose squares are half as large: the weight of the loss is doubled.
    c = 2 * c if ways == 2 else c
    classifier = LogisticRegression(C=c, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    classifier.fit(np.array(units(support)), np.array(labels))
    scores = classifier.decision_function(np.array(units(query)))
    return np.stack([-scores / 2, scores / 2], axis=1) if ways == 2 else scores


def soft_kmeans(support, labels, query, ways, iterations=1, normalize=False, scale=1.0, new=None):
    """Ren et al. 2018, section 3.1.1: soft assignment, then prototypes of all samples."""
    transform = units if normalize else table
    support, query = transform(support), transform(query)
    prototypes = means(support, labels, ways)
    for _ in range(iterations):
        shares = [softmax([-scale * squared_distance(x, p) for p in prototypes]) for x in query]
        refined = []
        for n in range(ways):
            samples = own(support, labels, n) + query
            weights = [1.0] * len(own(support, labels, n)) + [share[n] for share in shares]
            total = sum(w * x for w, x in zip(weights, samples, strict=True))
            refined.append(total / sum(weights))
        prototypes = refined
    return minus_distances(query if new is None else transform(new), prototypes)


def nearest(samples, i, count):
    """The `count` other samples nearest to sample i."""
    others = [j for j in range(len(samples)) if j != i]
    return sorted(others, key=lambda j: squared_distance(samples[i], samples[j]))[:count]


def label_propagation(
    support,
    labels,
    query,
    ways,
    graph="zhou",
    neighbors=20,
    alpha=0.8,
    sigma=0.2,
    new=None,
):
    """Zhou et al. 2004 and TPN: the k largest similarities of a row, in TPN its own among them."""
    samples = units(support) + units(query)
    n = len(samples)
    neighbors = n if neighbors is None else neighbors
    similar = np.zeros((n, n))
    for i in range(n):
        kept = [i, *nearest(samples, i, neighbors - 1)]
        for j in kept if graph == "tpn" else nearest(samples, i, neighbors):
            w = math.exp(-squared_distance(samples[i], samples[j]) / (2 * sigma**2))
            similar[i, j] = similar[j, i] = w
    degrees = similar.sum(axis=1)
    spread = np.array(
        [[similar[i, j] / math.sqrt(degrees[i] * degrees[j]) for j in range(n)] for i in range(n)]
    )
    start = np.zeros((n, ways))
    for i, label in enumerate(labels):
        start[i, label] = 1.0
    scores = (np.linalg.inv(np.eye(n) - alpha * spread) @ start)[len(support) :]
    if new is None:
        return scores
    shares = [row / sum(row) for row in scores]
    prototypes = assigned_means(samples[: len(support)], labels, samples[len(support) :], shares)
    return np.array([[float(x @ unit(p)) for p in prototypes] for x in units(new)])


def assigned_means(support, labels, query, shares):
    """The mean of a class: its support, and every query with its share in the class."""
    prototypes = []
    for n in range(max(labels) + 1):
        members = own(support, labels, n)
        total = sum(members) + sum(share[n] * x for share, x in zip(shares, query, strict=True))
        prototypes.append(total / (len(members) + sum(share[n] for share in shares)))
    return prototypes


def laplacian_shot(
    support,
    labels,
    query,
    ways,
    weight=1.0,
    neighbors=2,
    rectify=True,
    iterations=20,
    center="task",
    base_mean=None,
    new=None,
):
    """Ziko et al. 2020, algorithm 1, for prototypes that are rectified as in their experiments."""
    support, query = table(support), table(query)
    offset = np.zeros_like(support[0])
    if base_mean is not None:
        offset = np.array(base_mean, dtype=np.float64)
    elif center == "task":
        offset = (sum(support) / len(support) + sum(query) / len(query)) / 2
    support, query = [unit(x - offset) for x in support], [unit(x - offset) for x in query]
    prototypes, shift = means(support, labels, ways), 0.0
    if rectify:
        shift = sum(support) / len(support) - sum(query) / len(query)
        query = [x + shift for x in query]
        prototypes = weighted_means([*support, *query], prototypes)
    distances = -minus_distances(query, prototypes)
    nearest_queries = [nearest(query, i, neighbors) for i in range(len(query))]
    scores = -distances
    for _ in range(iterations):
        shares = [softmax(list(row)) for row in scores]
        scores = -distances.copy()
        for i, others in enumerate(nearest_queries):
            for j in others:
                scores[i] += weight * np.array(shares[j])
    if new is None:
        return scores
    shares = [softmax(list(row)) for row in scores]
    prototypes = assigned_means(support, labels, query, shares)
    return minus_distances([unit(x - offset) + shift for x in table(new)], prototypes)


def weighted_means(samples, basic):
    """Means of the samples predicted as a class, each times its softmax for the class."""

    def cosines(x):
        return [float(unit(x) @ unit(p)) for p in basic]

    labels = [int(np.argmax(cosines(x))) for x in samples]
    rectified = []
    for n in range(len(basic)):
        chosen = own(samples, labels, n)
        if not chosen:
            rectified.append(basic[n])
            continue
        weights = [softmax([10 * value for value in cosines(x)])[n] for x in chosen]
        total = sum(w * x for w, x in zip(weights, chosen, strict=True))
        rectified.append(total / len(chosen))
    return rectified


REFERENCES = {
    "protonet": protonet,
    "simpleshot": simpleshot,
    "matching": matching,
    "ridge": ridge,
    "logistic": logistic,
    "soft-kmeans": soft_kmeans,
    "label-propagation": label_propagation,
    "laplacian-shot": laplacian_shot,
}
