"""k-NN similarity for out-of-distribution scores: distractors are often similar to each other."""

from typing import NamedTuple

from torch import Tensor
from torch.nn.functional import normalize

from protorect.core.functional import predictions

NEIGHBORS = 10
_SAME = 1 - 1e-6  # the cosine of a sample with itself, but for rounding


class Scored(NamedTuple):
    """n samples and their scores."""

    features: Tensor  # (n, dim)
    scores: Tensor  # (n, ways) by the method
    cosines: Tensor  # (n, ways) with the rectified prototypes

    def part(self, rows: slice) -> "Scored":
        """Some of the samples."""
        return Scored(*(column[rows] for column in self))


def knn_similarity(samples: Scored, unlabeled: Scored) -> Tensor:
    """Mean cosine of the nearest neighbors of each sample with its predicted class, (n,).

    Neighbors are those of the `unlabeled` samples that are predicted as the same class. A sample is
    not its own neighbor; for one without neighbors the result is its own cosine.
    """
    labels, unlabeled_labels = predictions(samples.scores), predictions(unlabeled.scores)
    similarity = samples.cosines.gather(1, labels[:, None]).squeeze(1)
    for label in sorted(set(labels.tolist())):
        members = (labels == label).nonzero().flatten()
        others = (unlabeled_labels == label).nonzero().flatten()
        rows = normalize(samples.features[members], dim=-1).to(unlabeled.features.dtype)
        cosines = rows @ normalize(unlabeled.features[others], dim=-1).T
        cosines = cosines.masked_fill(cosines > _SAME, -2.0)
        nearest = cosines.topk(min(NEIGHBORS, len(others)), dim=-1)
        valid = nearest.values > -2.0
        with_class = unlabeled.cosines[others, label][nearest.indices] * valid
        means = with_class.sum(dim=-1) / valid.sum(dim=-1).clamp_min(1)
        any_valid = valid.any(dim=-1)
        similarity[members[any_valid]] = means[any_valid].to(similarity.dtype)
    return similarity
