"""Slow reference implementation of prototype rectification: plain Python, one vector at a time.

It was written from sections 3.2 and 3.3 of the paper and from the contract, before the batched code
was read. It imports nothing from `protorect`, and has no batches and no masks: one episode, one
class, one sample after the other, in float64.

An episode is a list of support features with their class numbers 0 .. ways-1, and a list of query
features. Numbers of samples need not be equal, neither in the support nor in the queries.

What the paper leaves open:

* the cosine with a zero vector is 0, and a zero vector stays zero when normalized;
* of equal cosines the first class wins, and of equally confident queries the first query;
* shifted queries are normalized again, and those are labeled, averaged and classified;
* a class takes the queries predicted as it where these are fewer than Z, or none;
* Z = 0 is no rectification, and the basic prototypes are kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Vector = np.ndarray  # one feature, (dim,), float64

SCALE = 10.0  # tau of eq. (1), for confidences: softmax(tau * cosine)


# --- helpers ---------------------------------------------------------------------------------


def vectors(features) -> list[Vector]:
    """A table of features as a list of float64 vectors."""
    return [np.array(row, dtype=np.float64) for row in features]


def length(x: Vector) -> float:
    """The Euclidean length, of the largest and of the smallest vectors too."""
    largest = max(abs(float(value)) for value in x)
    if largest == 0.0:
        return 0.0
    return largest * math.sqrt(sum((float(value) / largest) ** 2 for value in x))


def normalized(x: Vector) -> Vector:
    """X-bar: the feature at length one; a zero vector stays zero."""
    largest = max(abs(float(value)) for value in x)
    if largest == 0.0:
        return np.zeros_like(x)
    x = x / largest  # at a size that can be squared, whatever the feature's own size
    return x / length(x)


def cosine(x: Vector, y: Vector) -> float:
    """Cos(x, y); 0 if either is the zero vector."""
    return sum(float(a) * float(b) for a, b in zip(normalized(x), normalized(y), strict=True))


def mean(samples: Sequence[Vector]) -> Vector:
    """The plain average of some vectors."""
    total = np.zeros_like(samples[0])
    for x in samples:
        total = total + x
    return total / len(samples)


def softmax(values: Sequence[float]) -> list[float]:
    """Exponentials that sum to one; taking the largest off first changes nothing but overflow."""
    largest = max(values)
    exponentials = [math.exp(value - largest) for value in values]
    total = sum(exponentials)
    return [exponential / total for exponential in exponentials]


def log_softmax(values: Sequence[float]) -> list[float]:
    """The logarithm of `softmax`, for shares too small to be written as such."""
    largest = max(values)
    log_total = largest + math.log(sum(math.exp(value - largest) for value in values))
    return [value - log_total for value in values]


# --- section 3.2: the cosine similarity based prototypical network ------------------------------


def basic_prototype(support_of_class: Sequence[Vector]) -> Vector:
    """P_n, the mean of the normalized support features of one class: eq. (3)."""
    return mean([normalized(x) for x in support_of_class])


def basic_prototypes(support: Sequence[Vector], labels: Sequence[int], ways: int) -> list[Vector]:
    """P_0 .. P_{ways-1}: eq. (3) for one class after the other."""
    return [
        basic_prototype([x for x, label in zip(support, labels, strict=True) if label == n])
        for n in range(ways)
    ]


def cosines(query: Vector, prototypes: Sequence[Vector]) -> list[float]:
    """The score of one query for every class."""
    return [cosine(query, prototype) for prototype in prototypes]


def predicted_class(query: Vector, prototypes: Sequence[Vector]) -> int:
    """The class of the nearest prototype; the first one wins a tie."""
    scores = cosines(query, prototypes)
    best = 0
    for n, score in enumerate(scores):
        if score > scores[best]:
            best = n
    return best


# --- section 3.3: the cross-class bias ----------------------------------------------------------


def shift(support: Sequence[Vector], queries: Sequence[Vector]) -> Vector:
    """The term xi, from the queries' mean to the support's: eq. (8).

    Both are means over *samples*: a class with more samples counts for more.
    """
    return mean([normalized(x) for x in support]) - mean([normalized(x) for x in queries])


def shifted(query: Vector, xi: Vector) -> Vector:
    """A query moved by xi, which is added to "each normalized query feature"; normalized again."""
    return normalized(normalized(query) + xi)


# --- section 3.3: the intra-class bias ----------------------------------------------------------


def confidence(
    query: Vector, prototypes: Sequence[Vector], n: int, rank: str = "cosine", scale: float = SCALE
) -> float:
    """How sure the network is that a query belongs to class n: eq. (1), or the bare cosine."""
    if rank == "cosine":
        return cosine(query, prototypes[n])
    if rank == "softmax":
        return softmax([scale * score for score in cosines(query, prototypes)])[n]
    raise ValueError(f"unknown rank {rank!r}")


def pseudo_labeled(
    queries: Sequence[Vector],
    prototypes: Sequence[Vector],
    n: int,
    z: int | None,
    rank: str = "cosine",
    assignment: str = "predicted",
    scale: float = SCALE,
) -> list[int]:
    """Which queries join class n: the "top Z confidently predicted query samples per class".

    The most confident first; of equals, the first in the list first. `z=None` takes them all.
    """
    if assignment == "predicted":
        candidates = [i for i, x in enumerate(queries) if predicted_class(x, prototypes) == n]
    elif assignment == "overlapping":
        candidates = list(range(len(queries)))
    else:
        raise ValueError(f"unknown assignment {assignment!r}")
    sure = {i: confidence(queries[i], prototypes, n, rank, scale) for i in candidates}
    candidates.sort(key=lambda i: (-sure[i], i))
    return candidates if z is None else candidates[:z]


def weights(
    augmented: Sequence[Vector],
    prototypes: Sequence[Vector],
    n: int,
    epsilon: float = 10.0,
    weighting: str = "samples",
) -> list[float]:
    """w_{i,n}, the share of each sample of class n's augmented support S' in P'_n: eq. (6)."""
    if weighting == "samples":
        # As printed: exp(eps Cos(X'_i, P_n)), over the sum of that for the class's samples.
        return softmax([epsilon * cosine(x, prototypes[n]) for x in augmented])
    if weighting == "classes":
        # Each sample's own softmax over the classes, its value for class n, divided by the sum of
        # those values for the class's samples. p_i / sum_j p_j is the softmax of log p_i.
        return softmax(
            [log_softmax([epsilon * c for c in cosines(x, prototypes)])[n] for x in augmented]
        )
    raise ValueError(f"unknown weighting {weighting!r}")


def weighted_sum(samples: Sequence[Vector], shares: Sequence[float]) -> Vector:
    """P'_n, the weighted sum of the normalized features of the augmented support: eq. (5)."""
    total = np.zeros_like(samples[0])
    for x, share in zip(samples, shares, strict=True):
        total = total + share * normalized(x)
    return total


# --- the whole method ----------------------------------------------------------------------------


@dataclass
class Rectification:
    """All intermediate results of one episode."""

    xi: Vector  # (dim,); zero if the queries were not shifted
    queries: list[Vector]  # normalized, and shifted if so asked
    basic: list[Vector]  # P_n, one per class
    predicted: list[int]  # class of each query by the basic prototypes
    chosen: list[list[int]]  # queries that joined each class, most confident first
    weights: list[list[float]]  # shares in each class: its support in order, then `chosen`
    prototypes: list[Vector]  # P'_n if rectified, else P_n
    scores: np.ndarray  # (queries, ways), the final cosines


def rectify_episode(
    support,
    labels: Sequence[int],
    queries,
    ways: int,
    *,
    move: bool = True,
    rectify: bool = True,
    z: int | None = 8,
    epsilon: float = 10.0,
    weighting: str = "samples",
    rank: str = "cosine",
    assignment: str = "predicted",
    scale: float = SCALE,
) -> Rectification:
    """Normalise, shift the queries, label them, rectify once, classify the shifted queries."""
    support = [normalized(x) for x in vectors(support)]
    queries = [normalized(x) for x in vectors(queries)]
    labels = [int(label) for label in labels]

    basic = basic_prototypes(support, labels, ways)  # eq. (3)

    xi = np.zeros_like(support[0])
    if move:
        xi = shift(support, queries)  # eq. (8)
        queries = [shifted(x, xi) for x in queries]

    chosen: list[list[int]] = [[] for _ in range(ways)]
    shares: list[list[float]] = [[] for _ in range(ways)]
    prototypes = basic
    if rectify and z != 0:
        prototypes = []
        for n in range(ways):
            chosen[n] = pseudo_labeled(queries, basic, n, z, rank, assignment, scale)
            augmented = [x for x, label in zip(support, labels, strict=True) if label == n]
            augmented += [queries[i] for i in chosen[n]]  # S' = S + the Z pseudo-labeled
            shares[n] = weights(augmented, basic, n, epsilon, weighting)  # eq. (6)
            prototypes.append(weighted_sum(augmented, shares[n]))  # eq. (5)

    return Rectification(
        xi=xi,
        queries=queries,
        basic=basic,
        predicted=[predicted_class(x, basic) for x in queries],
        chosen=chosen,
        weights=shares,
        prototypes=prototypes,
        scores=np.array([cosines(x, prototypes) for x in queries]),
    )


METHODS: dict[str, dict] = {
    "cspn": {"move": False, "rectify": False},
    "bd-c": {"move": True, "rectify": False},
    "bd-i": {"move": False, "rectify": True},
    "bd-cspn": {"move": True, "rectify": True},
    "bd-cspn-classes": {"move": True, "rectify": True, "weighting": "classes"},
}


def scores(method: str, support, labels, queries, ways: int, **options) -> np.ndarray:
    """Cosines (queries, ways) of one of the paper's five methods, for one episode."""
    return rectify_episode(support, labels, queries, ways, **{**METHODS[method], **options}).scores
