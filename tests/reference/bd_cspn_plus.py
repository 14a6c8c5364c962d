"""Slow reference implementation of BD-CSPN-plus (docs/plus.md): one sample at a time, float64."""

from __future__ import annotations

import math

import numpy as np

from reference.rectification import cosine, normalized, vectors

PENALTY = 1.0
ITERATIONS = 8


def scores(
    support,
    labels,
    query,
    ways: int,
    iterations: int = 3,
    joining: int = 12,
    scale: float = 10.0,
    power: float = 2.0,
    sharpness: float = 20.0,
    tolerance: float = 0.031,
    regression_iterations: int = 5,
    held_out: bool = True,
    new=None,
) -> np.ndarray:
    """Corrected cosines (n_query, ways) of the queries, or of new samples after a fit to them."""
    support, query = vectors(support), vectors(query)
    new = None if new is None else vectors(new)
    if min(x.min() for x in [*support, *query]) >= 0:
        support, query = [np.sqrt(x) for x in support], [np.sqrt(x) for x in query]
        new = None if new is None else [np.sqrt(np.maximum(x, 0)) for x in new]
    support = [normalized(x) for x in support]
    classes = [[x for x, y in zip(support, labels, strict=True) if y == n] for n in range(ways)]
    center = sum(sum(members) / len(members) for members in classes) / ways
    classes = [[normalized(x - center) for x in members] for members in classes]
    query = [normalized(normalized(x) - center) for x in query]
    class_sums = [sum(members) for members in classes]

    p, weights = unbalanced(query, class_sums, iterations, joining, scale, power)
    share = 0.0
    if len(query) >= ways:
        balanced_p, evidence = balanced(query, class_sums, sharpness)
        share = math.exp(-evidence / (tolerance * (ways - 1) ** 0.85 * math.sqrt(len(query))))
        p = (1 - share) * p + share * balanced_p
        weights = (1 - share) * weights + share * math.sqrt(ways / len(query))

    shots = [len(members) for members in classes]
    samples, targets, counts = list(query), list(p - 1 / ways), list(weights)
    for n, members in enumerate(classes):
        for x in members:
            samples.append(x)
            targets.append(np.eye(ways)[n] - 1 / ways)
            counts.append(np.mean(shots) / len(members))
    samples, targets, counts = np.array(samples), np.array(targets), np.array(counts)
    regression = regression_weight(classes, regression_iterations) if held_out else 1.0
    table, new_table = np.zeros((len(query), ways)), 0.0
    for weight, count in ((1 - regression, 1), (regression, regression_iterations)):
        columns = [ridge(samples, targets[:, n], counts, count) for n in range(ways)]
        table += weight * cosines(query, columns)
        if new is not None:
            new_query = [normalized(normalized(x) - center) for x in new]
            new_table += weight * cosines(new_query, columns)
    odds = np.zeros(ways)
    if share:
        odds = share * np.log(balancing_factors(np.exp(sharpness * table))) / sharpness
    return odds + (table if new is None else new_table)


def cosines(query, directions) -> np.ndarray:
    return np.array([[cosine(x, p) for p in directions] for x in query])


def unbalanced(query, class_sums, iterations: int, joining: int, scale: float, power: float):
    """Probabilities and weights of the queries when only the most confident join a class."""
    table = cosines(query, class_sums)
    for _ in range(iterations):
        weights = np.zeros(len(query))
        prototypes = []
        for n, own in enumerate(class_sums):
            confident = confident_weights(n, table, joining, scale, power)
            prototypes.append(own + sum(w * query[i] for i, w in confident.items()))
            for i, w in confident.items():
                weights[i] = w
        table = cosines(query, prototypes)
    powers = np.exp(scale * table)
    return powers / powers.sum(axis=1, keepdims=True), weights


def confident_weights(n: int, table, joining: int, scale: float, power: float) -> dict[int, float]:
    """Weight of each query that joins class n."""
    predicted = [i for i, row in enumerate(table) if np.argmax(row) == n]
    chosen = sorted(predicted, key=lambda i: -table[i][n])[:joining]
    if not chosen:
        return {}
    p = {
        i: math.exp(scale * table[i][n]) / sum(math.exp(scale * c) for c in table[i])
        for i in chosen
    }
    weights = {i: (p[i] / max(p.values())) ** power for i in chosen}
    divisor = math.sqrt(max(1.0, sum(weights.values())))
    return {i: w / divisor for i, w in weights.items()}


def balanced(query, class_sums, sharpness: float):
    """Probabilities of the queries for balanced classes, and the evidence against these."""
    table, evidence = cosines(query, class_sums), None
    for _ in range(2):
        p = balance(np.exp(sharpness * table))
        sums = [
            own + sum(row[n] * x for row, x in zip(p, query, strict=True))
            for n, own in enumerate(class_sums)
        ]
        table = cosines(query, sums)
        if evidence is None:
            evidence = likelihood_ratio(np.exp(sharpness * table))
    return balance(np.exp(sharpness * table)), evidence


def balance(affinity: np.ndarray) -> np.ndarray:
    assigned = affinity * balancing_factors(affinity)
    return assigned / assigned.sum(axis=1, keepdims=True)


def balancing_factors(affinity: np.ndarray) -> np.ndarray:
    factors = np.ones(affinity.shape[1])
    for _ in range(ITERATIONS):
        assigned = affinity * factors
        factors = factors / (assigned / assigned.sum(axis=1, keepdims=True)).sum(axis=0)
        factors = factors / factors.max()
    return factors


def likelihood_ratio(affinity: np.ndarray) -> float:
    ways = affinity.shape[1]
    proportions = np.full(ways, 1 / ways)
    for _ in range(ITERATIONS):
        assigned = affinity * proportions
        proportions = (assigned / assigned.sum(axis=1, keepdims=True)).mean(axis=0)
    return sum(math.log((row @ proportions) / row.mean()) for row in affinity)


def regression_weight(classes, iterations: int) -> float:
    """Weight of the regression, by two-fold cross-validation on the support."""
    ways = len(classes)
    if max(len(members) for members in classes) < 2:
        return 1.0
    gain, differing = 0, 0
    for half in (0, 1):
        fit = [(x, n) for n, own in enumerate(classes) for x in own[1 - half :: 2]]
        rest = [(x, n) for n, own in enumerate(classes) for x in own[half::2]]
        samples = np.array([x for x, _ in fit])
        targets = np.array([np.eye(ways)[n] - 1 / ways for _, n in fit])
        correct = []
        for count in (1, iterations):
            columns = [ridge(samples, targets[:, n], np.ones(len(fit)), count) for n in range(ways)]
            predicted = cosines([x for x, _ in rest], columns).argmax(axis=1)
            correct.append([int(a == n) for a, (_, n) in zip(predicted, rest, strict=True)])
        for by_sums, by_regression in zip(*correct, strict=True):
            gain += by_regression - by_sums
            differing += abs(by_regression - by_sums)
    return 1 / (1 + math.exp(-(2 * gain / math.sqrt(max(differing, 1)) + 1)))


def ridge(samples, targets, weights, iterations: int) -> np.ndarray:
    """The best direction in the Krylov space of that many iterations, by least squares."""
    system = samples.T @ (weights[:, None] * samples) + PENALTY * np.eye(samples.shape[1])
    right = samples.T @ (weights * targets)
    basis = [right]
    for _ in range(iterations - 1):
        basis.append(system @ basis[-1])
    space, _ = np.linalg.qr(np.array([b / np.linalg.norm(b) for b in basis]).T)
    return space @ np.linalg.solve(space.T @ system @ space, space.T @ right)
