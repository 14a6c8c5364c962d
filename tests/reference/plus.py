"""BD-CSPN-plus read slowly from docs/plus.md: one task, class and sample at a time, float64."""

from __future__ import annotations

import math

import numpy as np

from reference.rectification import cosine, normalised, vectors


def scores(
    support,
    labels,
    query,
    ways: int,
    rounds: int = 3,
    joining: int = 12,
    scale: float = 10.0,
    power: float = 2.0,
    caution: float = 6.0,
) -> np.ndarray:
    """Cosines (n_query, ways) of the queries with the last prototypes."""
    support = [normalised(x) for x in vectors(support)]
    query = [normalised(x) for x in vectors(query)]
    classes = [[x for x, y in zip(support, labels, strict=True) if y == n] for n in range(ways)]
    prototypes = [sum(members) / len(members) for members in classes]
    centre = sum(prototypes) / ways
    shift = centre - sum(query) / len(query)
    share = trust(classes, query, prototypes, shift, caution)

    classes = [[normalised(x - centre) for x in members] for members in classes]
    query = [normalised(x + share * shift - centre) for x in query]
    prototypes = [sum(members) for members in classes]
    for _ in range(rounds):
        table = [[cosine(x, p) for p in prototypes] for x in query]
        prototypes = [
            sum(classes[n]) + joined(n, table, query, joining, scale, power) for n in range(ways)
        ]
    return np.array([[cosine(x, p) for p in prototypes] for x in query])


def trust(classes, query, prototypes, shift, caution: float) -> float:
    """The share of the shift that counts as bias."""
    ways = len(classes)
    if len(query) < ways:
        return 0.0
    groups = [list(members) for members in classes]
    for x in query:
        table = [cosine(x, p) for p in prototypes]
        groups[table.index(max(table))].append(x)
    scatter = 0.0
    for group in groups:
        mean = sum(group) / len(group)
        scatter += sum(float((x - mean) @ (x - mean)) for x in group)
    variance = scatter / (sum(len(group) for group in groups) - ways)
    expected = variance * (sum(1 / len(c) for c in classes) / ways**2 + 1 / len(query))
    return min(1.0, expected / float(shift @ shift)) ** caution


def joined(n: int, table, query, joining: int, scale: float, power: float):
    """Weighted sum of the queries that join class n."""
    predicted = [i for i, row in enumerate(table) if row.index(max(row)) == n]
    surest = sorted(predicted, key=lambda i: -table[i][n])[:joining]
    if not surest:
        return 0.0
    sure = {
        i: math.exp(scale * table[i][n]) / sum(math.exp(scale * c) for c in table[i])
        for i in surest
    }
    most = max(sure.values())
    weights = {i: (sure[i] / most) ** power for i in surest}
    together = math.sqrt(max(1.0, sum(weights.values())))
    return sum(weights[i] / together * query[i] for i in surest)
