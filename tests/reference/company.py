"""Neighbours of the same label, one picture at a time."""

import math


def slow_company(pictures, pile, neighbours):
    """Each of `pictures` and `pile` is a list of (row, scores, cosines)."""
    found = []
    for row, scores, cosines in pictures:
        label = scores.index(max(scores))
        others = []
        for other, of_other, near in pile:
            cosine = sum(a * b for a, b in zip(row, other, strict=True))
            cosine /= math.hypot(*row) * math.hypot(*other)
            if of_other.index(max(of_other)) == label and cosine < 1 - 1e-6:
                others.append((cosine, near[label]))
        nearest = [told for _, told in sorted(others, reverse=True)[:neighbours]]
        found.append(sum(nearest) / len(nearest) if nearest else cosines[label])
    return found
