"""Slow reference implementations of the temperature and of the out-of-distribution similarity."""

import math

import numpy as np


def negative_log_likelihood(scores, labels, weights, temperature):
    total = 0.0
    for row, label, weight in zip(scores, labels, weights, strict=True):
        powers = [math.exp((value - max(row)) / temperature) for value in row]
        total += weight * (math.log(sum(powers)) - (row[label] - max(row)) / temperature)
    return total


def expected_scale(scores, rows, ways, shots):
    """The expected lead / temperature, from scores and centered unit rows of unlabeled samples."""
    predicted = [int(np.argmax(row)) for row in scores]
    shares = [predicted.count(n) / len(predicted) for n in range(ways)]
    entropy = -sum(share * math.log(share) for share in shares if share) / math.log(ways)
    agreeing = []
    for i, row in enumerate(rows):
        others = sorted((j for j in range(len(rows)) if j != i), key=lambda j: -(row @ rows[j]))
        agreeing += [predicted[j] == predicted[i] for j in others[:3]]
    share = sum(agreeing) / len(agreeing)
    odds = math.log((share + 0.02) / (1.02 - share))
    return math.exp(
        -0.68 + 0.7 * math.log(ways / 5) + 0.35 * entropy + 0.75 * odds + 0.25 * math.log(shots)
    )


def label_weights(labels, predicted, ways):
    """Weights of held-out labels: the smoothed share of their class over that of the labels."""
    raw = [
        (predicted.count(label) + 0.3 * len(predicted) / ways) / labels.count(label)
        for label in labels
    ]
    return [len(raw) * one / sum(raw) for one in raw]


def temperature(held_out, labels, weights, expected, candidates):
    """The candidate with the least loss of held-out scores, near the expected temperature."""

    def loss(one):
        loss = negative_log_likelihood(held_out, labels, weights, one)
        return 4 * math.log(one / expected) ** 2 + loss

    return min(candidates, key=loss)


def unit(x):
    return x / np.linalg.norm(x)


def similarities(support, labels, unlabeled, samples, unknown=()):
    """Similarity of each of `samples`, in float64, one at a time."""
    everything = [*support, *unlabeled, *unknown]
    root = min(x.min() for x in everything) >= 0
    change = np.sqrt if root else np.asarray
    support, unlabeled, samples, unknown = (
        [unit(change(x)) for x in part] for part in (support, unlabeled, samples, unknown)
    )
    ways = max(labels) + 1
    means = [
        np.mean([x for x, y in zip(support, labels, strict=True) if y == n], axis=0)
        for n in range(ways)
    ]
    center, floor = np.zeros(len(means[0])), -1.0
    others = [*unlabeled, *unknown]
    if len(others) >= 2 * ways:
        center = np.mean([*support, *others], axis=0)
        plain = [max(x @ unit(m) for m in means) for x in others]
        median, high = np.quantile(plain, [0.5, 0.84])
        floor = median - 2.5 * (high - median)

    prototypes = [unit(m - center) for m in means]
    if len(unlabeled):
        rows = [unit(x - center) for x in unlabeled]
        nearest = [int(np.argmax([row @ p for p in prototypes])) for row in rows]
        joined = []
        for n, prototype in enumerate(prototypes):
            members = [row for row, way in zip(rows, nearest, strict=True) if way == n]
            members.sort(key=lambda row: -(row @ prototype))
            joined.append(unit(prototype + sum(members[: min(8, len(members) // 2)], 0 * center)))
        prototypes = joined

    def own(x):
        row = unit(x - center)
        found = max(row @ p for p in prototypes)
        nearest = max([0.0, *(row @ unit(u - center) for u in unknown)])
        return found - nearest * min(1.0, (1 - found) / max(1 - nearest, 1e-6))

    values = [own(x) for x in others]
    found = []
    for x in samples:
        cosines = [unit(x - center) @ unit(other - center) for other in others]
        near = [j for j in np.argsort([-c for c in cosines]) if cosines[j] <= 1 - 1e-6][:10]
        neighbors = np.mean([values[j] for j in near]) if near else own(x)
        lacking = max(0.0, floor - max(x @ unit(m) for m in means))
        found.append(0.4 * own(x) + 0.6 * neighbors - 5 * lacking)
    return np.array(found)
