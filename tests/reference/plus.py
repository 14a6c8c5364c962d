"""BD-CSPN-plus read slowly from docs/plus.md: one task, class and sample at a time, float64."""

from __future__ import annotations

import math

import numpy as np

from reference.rectification import cosine, normalised, vectors

SHARING_ROUNDS = 8


def scores(
    support,
    labels,
    query,
    ways: int,
    rounds: int = 3,
    joining: int = 12,
    scale: float = 10.0,
    power: float = 2.0,
    sharpness: float = 20.0,
    tolerance: float = 0.031,
    penalty: float = 1.0,
    steps: int = 5,
    held_out: bool = True,
) -> np.ndarray:
    """Corrected cosines (n_query, ways) of the queries."""
    support, query = vectors(support), vectors(query)
    if min(x.min() for x in [*support, *query]) >= 0:
        support, query = [np.sqrt(x) for x in support], [np.sqrt(x) for x in query]
    support = [normalised(x) for x in support]
    classes = [[x for x, y in zip(support, labels, strict=True) if y == n] for n in range(ways)]
    centre = sum(sum(members) / len(members) for members in classes) / ways
    classes = [[normalised(x - centre) for x in members] for members in classes]
    query = [normalised(normalised(x) - centre) for x in query]
    labelled = [sum(members) for members in classes]

    said, weights = wary(query, labelled, rounds, joining, scale, power)
    share = 0.0
    if len(query) >= ways:
        equal, evidence = equally(query, labelled, sharpness)
        share = math.exp(-evidence / (tolerance * (ways - 1) ** 0.85 * math.sqrt(len(query))))
        said = (1 - share) * said + share * equal
        weights = (1 - share) * weights + share * math.sqrt(ways / len(query))

    shots = [len(members) for members in classes]
    samples, targets, counts = list(query), list(said - 1 / ways), list(weights)
    for n, members in enumerate(classes):
        for x in members:
            samples.append(x)
            targets.append(np.eye(ways)[n] - 1 / ways)
            counts.append(np.mean(shots) / len(members))
    samples, targets, counts = np.array(samples), np.array(targets), np.array(counts)
    trust = regression_trust(classes, penalty, steps) if held_out else 1.0
    table = np.zeros((len(query), ways))
    for part, number in ((1 - trust, 1), (trust, steps)):
        columns = [ridge(samples, targets[:, n], counts, penalty, number) for n in range(ways)]
        table += part * cosines(query, columns)
    if share:
        table += share * np.log(equal_odds(np.exp(sharpness * table))) / sharpness
    return table


def cosines(query, directions) -> np.ndarray:
    return np.array([[cosine(x, p) for p in directions] for x in query])


def wary(query, labelled, rounds: int, joining: int, scale: float, power: float):
    """Probabilities of the queries, and what each weighs, when only the confident few join."""
    table = cosines(query, labelled)
    for _ in range(rounds):
        weights = np.zeros(len(query))
        prototypes = []
        for n, own in enumerate(labelled):
            joined = joining_weights(n, table, joining, scale, power)
            prototypes.append(own + sum(w * query[i] for i, w in joined.items()))
            for i, w in joined.items():
                weights[i] = w
        table = cosines(query, prototypes)
    odds = np.exp(scale * table)
    return odds / odds.sum(axis=1, keepdims=True), weights


def joining_weights(n: int, table, joining: int, scale: float, power: float) -> dict[int, float]:
    """What each query weighs that joins class n."""
    predicted = [i for i, row in enumerate(table) if np.argmax(row) == n]
    surest = sorted(predicted, key=lambda i: -table[i][n])[:joining]
    if not surest:
        return {}
    sure = {
        i: math.exp(scale * table[i][n]) / sum(math.exp(scale * c) for c in table[i])
        for i in surest
    }
    most = max(sure.values())
    weights = {i: (sure[i] / most) ** power for i in surest}
    together = math.sqrt(max(1.0, sum(weights.values())))
    return {i: w / together for i, w in weights.items()}


def equally(query, labelled, sharpness: float):
    """Probabilities of the queries where every class gets as many, and the evidence against it."""
    table, evidence = cosines(query, labelled), None
    for _ in range(2):
        said = shared(np.exp(sharpness * table))
        sums = [
            own + sum(p[n] * x for p, x in zip(said, query, strict=True))
            for n, own in enumerate(labelled)
        ]
        table = cosines(query, sums)
        if evidence is None:
            evidence = likelihood_ratio(np.exp(sharpness * table))
    return shared(np.exp(sharpness * table)), evidence


def shared(affinity: np.ndarray) -> np.ndarray:
    claimed = affinity * equal_odds(affinity)
    return claimed / claimed.sum(axis=1, keepdims=True)


def equal_odds(affinity: np.ndarray) -> np.ndarray:
    odds = np.ones(affinity.shape[1])
    for _ in range(SHARING_ROUNDS):
        claimed = affinity * odds
        odds = odds / (claimed / claimed.sum(axis=1, keepdims=True)).sum(axis=0)
        odds = odds / odds.max()
    return odds


def likelihood_ratio(affinity: np.ndarray) -> float:
    ways = affinity.shape[1]
    shares = np.full(ways, 1 / ways)
    for _ in range(SHARING_ROUNDS):
        claimed = affinity * shares
        shares = (claimed / claimed.sum(axis=1, keepdims=True)).mean(axis=0)
    return sum(math.log((row @ shares) / row.mean()) for row in affinity)


def regression_trust(classes, penalty: float, steps: int) -> float:
    """How far the regression is followed, by halves of the support that are classified in turn."""
    ways = len(classes)
    if max(len(members) for members in classes) < 2:
        return 1.0
    gained, only_one = 0, 0
    for half in (0, 1):
        fit = [(x, n) for n, own in enumerate(classes) for x in own[1 - half :: 2]]
        rest = [(x, n) for n, own in enumerate(classes) for x in own[half::2]]
        samples = np.array([x for x, _ in fit])
        targets = np.array([np.eye(ways)[n] - 1 / ways for _, n in fit])
        right = []
        for number in (1, steps):
            columns = [
                ridge(samples, targets[:, n], np.ones(len(fit)), penalty, number)
                for n in range(ways)
            ]
            said = cosines([x for x, _ in rest], columns).argmax(axis=1)
            right.append([int(a == n) for a, (_, n) in zip(said, rest, strict=True)])
        for by_sums, by_regression in zip(*right, strict=True):
            gained += by_regression - by_sums
            only_one += abs(by_regression - by_sums)
    return 1 / (1 + math.exp(-(2 * gained / math.sqrt(max(only_one, 1)) + 1)))


def ridge(samples, targets, weights, penalty: float, steps: int) -> np.ndarray:
    """The best direction in the Krylov space of that many steps, by least squares."""
    system = samples.T @ (weights[:, None] * samples) + penalty * np.eye(samples.shape[1])
    right = samples.T @ (weights * targets)
    basis = [right]
    for _ in range(steps - 1):
        basis.append(system @ basis[-1])
    space, _ = np.linalg.qr(np.array([b / np.linalg.norm(b) for b in basis]).T)
    return space @ np.linalg.solve(space.T @ system @ space, space.T @ right)
