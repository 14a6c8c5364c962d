"""k-NN similarity, one sample at a time."""

import math


def slow_knn_similarity(samples, unlabeled, neighbors):
    """Each of `samples` and `unlabeled` is a list of (features, scores, cosines)."""
    similarities = []
    for row, scores, cosines in samples:
        label = scores.index(max(scores))
        alike = []
        for other_row, other_scores, other_cosines in unlabeled:
            cosine = sum(a * b for a, b in zip(row, other_row, strict=True))
            cosine /= math.hypot(*row) * math.hypot(*other_row)
            if other_scores.index(max(other_scores)) == label and cosine < 1 - 1e-6:
                alike.append((cosine, other_cosines[label]))
        nearest = [with_class for _, with_class in sorted(alike, reverse=True)[:neighbors]]
        similarities.append(sum(nearest) / len(nearest) if nearest else cosines[label])
    return similarities
