"""Slow reference implementation of BD-CSPN-plus (docs/plus.md): one sample at a time, float64."""

from __future__ import annotations

import math

import numpy as np

from reference.rectification import cosine, normalized, vectors

ITERATIONS = 8


def scores(
    support,
    labels,
    query,
    ways: int,
    iterations: int = 3,
    joining: int = 12,
    scale: float = 10.0,
    sharpness: float = 20.0,
    tolerance: float = 0.031,
    imbalance: float = 0.4,
    regression_iterations: int = 5,
    held_out: bool = True,
    max_queries: int = 600,
    new=None,
) -> np.ndarray:
    """Corrected cosines (n_query, ways) of the queries, or of new samples after a fit to them."""
    support, query = vectors(support), vectors(query)
    most = max(max_queries, 20 * ways)
    if len(query) > most:
        new = query if new is None else new
        query = query[:: math.ceil(len(query) / most)]
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
    regression = regression_weight(classes, regression_iterations) if held_out else 1.0
    penalty = penalty_of(classes)
    scale *= max(1.0, math.log(ways, 5))

    def classify(p, weights):
        """Cosines of the queries after they joined by weights (n_query, ways)."""
        prototypes = [
            own + sum(w * x for w, x in zip(weights[:, n], query, strict=True))
            for n, own in enumerate(class_sums)
        ]
        if regression_iterations == 1:
            return cosines(query, prototypes)
        data = with_queries(classes, query, p, weights.sum(axis=1))
        columns = [
            ridge(data[0], data[1][:, n], data[2], regression_iterations, penalty)
            for n in range(ways)
        ]
        return (1 - regression) * cosines(query, prototypes) + regression * cosines(query, columns)

    none = np.zeros((len(query), ways))
    table = classify(none, none)
    gate = proportions_weight(table, len(support) / ways, sharpness, imbalance)
    for _ in range(iterations):
        table = table + gate * log_proportions(table, sharpness)
        p = softmax(scale * table)
        weights = joined(table, p, joining)
        table = classify(p, weights)
    p = softmax(scale * (table + gate * log_proportions(table, sharpness)))
    weights = weights.sum(axis=1)
    share = 0.0
    if len(query) >= ways:
        balanced_p, evidence = balanced(query, class_sums, table, sharpness)
        share = math.exp(-evidence / (tolerance * (ways - 1) ** 0.85 * math.sqrt(len(query))))
        p = (1 - share) * p + share * balanced_p
        weights = (1 - share) * weights + share * math.sqrt(ways / len(query))

    samples, targets, counts = with_queries(classes, query, p, weights)
    table, new_table = np.zeros((len(query), ways)), 0.0
    for weight, count in ((1 - regression, 1), (regression, regression_iterations)):
        columns = [ridge(samples, targets[:, n], counts, count, penalty) for n in range(ways)]
        table += weight * cosines(query, columns)
        if new is not None:
            new_query = [normalized(normalized(x) - center) for x in new]
            new_table += weight * cosines(new_query, columns)
    odds = (1 - share) * gate * log_proportions(table, sharpness)
    if share:
        odds = odds + share * np.log(balancing_factors(np.exp(sharpness * table))) / sharpness
    return odds + (table if new is None else new_table)


def with_queries(classes, query, p, weights):
    """Samples, targets and weights of the regression."""
    ways, shots = len(classes), [len(members) for members in classes]
    samples, targets, counts = list(query), list(p - 1 / ways), list(weights)
    for n, members in enumerate(classes):
        for x in members:
            samples.append(x)
            targets.append(np.eye(ways)[n] - 1 / ways)
            counts.append(np.mean(shots) / len(members))
    return np.array(samples), np.array(targets), np.array(counts)


def softmax(table: np.ndarray) -> np.ndarray:
    powers = np.exp(table)
    return powers / powers.sum(axis=1, keepdims=True)


def penalty_of(classes) -> float:
    return 0.5 * math.sqrt(max(1.0, sum(len(members) for members in classes) / 50))


def cosines(query, directions) -> np.ndarray:
    return np.array([[cosine(x, p) for p in directions] for x in query])


def joined(table, p, joining: int) -> np.ndarray:
    """Weight of each query in each class, (n_query, ways)."""
    weights = np.zeros_like(table)
    ways = table.shape[1]
    for n in range(ways):
        predicted = [i for i, row in enumerate(table) if np.argmax(row) == n]
        for i in sorted(predicted, key=lambda i: -table[i][n])[:joining]:
            weights[i, n] = max(0.0, p[i, n] - 1 / ways) / (1 - 1 / ways)
        weights[:, n] /= math.sqrt(max(1.0, weights[:, n].sum()))
    return weights


def proportions_weight(table, shots: float, sharpness: float, imbalance: float) -> float:
    affinity = np.exp(sharpness * table)
    found = proportions(affinity, 0.1)
    evidence = max(0.0, gain(affinity, found)) / len(table)
    needed = imbalance * math.sqrt(table.shape[1] - 1) * min(shots, 10) ** -0.6
    return 1 - math.exp(-((evidence / max(needed, 1e-6)) ** 4))


def log_proportions(table, sharpness: float) -> np.ndarray:
    ways = table.shape[1]
    return np.log(ways * proportions(np.exp(sharpness * table), 0.1)) / sharpness


def balanced(query, class_sums, table, sharpness: float):
    """Probabilities of the queries for balanced classes, and the evidence against these."""
    evidence = None
    for _ in range(2):
        p = balance(np.exp(sharpness * table))
        sums = [
            own + sum(row[n] * x for row, x in zip(p, query, strict=True))
            for n, own in enumerate(class_sums)
        ]
        table = cosines(query, sums)
        if evidence is None:
            affinity = np.exp(sharpness * table)
            evidence = max(0.0, gain(affinity, proportions(affinity, 0.0)))
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


def proportions(affinity: np.ndarray, added: float) -> np.ndarray:
    ways = affinity.shape[1]
    found = np.full(ways, 1 / ways)
    for _ in range(ITERATIONS):
        assigned = affinity * found
        found = (assigned / assigned.sum(axis=1, keepdims=True)).mean(axis=0) + added / ways
        found = found / found.sum()
    return found


def gain(affinity: np.ndarray, found: np.ndarray) -> float:
    """Log-likelihood under these proportions, minus that under equal ones."""
    return sum(math.log((row @ found) / row.mean()) for row in affinity)


def regression_weight(classes, iterations: int) -> float:
    """Weight of the regression, by two-fold cross-validation on the support."""
    ways = len(classes)
    if max(len(members) for members in classes) < 2:
        return 0.5
    better, differing = 0, 0
    sums = [sum(own) for own in classes]

    def nearest_other(x, n):
        return max(cosine(x, other) for m, other in enumerate(sums) if m != n)

    classes = [
        sorted(own, key=lambda x, n=n: -nearest_other(x, n)) for n, own in enumerate(classes)
    ]
    for half in (0, 1):
        fit = [(x, n) for n, own in enumerate(classes) for x in own[1 - half :: 2]]
        shots = [len(own[1 - half :: 2]) for own in classes]
        rest = [(x, n) for n, own in enumerate(classes) for x in own[half::2] if shots[n]]
        samples = np.array([x for x, _ in fit])
        targets = np.array([np.eye(ways)[n] - 1 / ways for _, n in fit])
        counts = np.array([np.mean([max(k, 1) for k in shots]) / shots[n] for _, n in fit])
        correct = []
        for count in (1, iterations):
            columns = [
                ridge(samples, targets[:, n], counts, count, penalty_of(classes))
                for n in range(ways)
            ]
            predicted = cosines([x for x, _ in rest], columns).argmax(axis=1)
            correct.append([int(a == n) for a, (_, n) in zip(predicted, rest, strict=True)])
        for by_sums, by_regression in zip(*correct, strict=True):
            better += by_regression - by_sums
            differing += abs(by_regression - by_sums)
    return 1 / (1 + math.exp(-2 * better / math.sqrt(max(differing, 1)) - 2))


def ridge(samples, targets, weights, iterations: int, penalty: float) -> np.ndarray:
    """The best direction in the Krylov space of that many iterations, by least squares."""
    system = samples.T @ (weights[:, None] * samples) + penalty * np.eye(samples.shape[1])
    right = samples.T @ (weights * targets)
    basis = [right]
    for _ in range(iterations - 1):
        basis.append(system @ basis[-1])
    space, _ = np.linalg.qr(np.array([b / np.linalg.norm(b) for b in basis]).T)
    return space @ np.linalg.solve(space.T @ system @ space, space.T @ right)
