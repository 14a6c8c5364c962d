"""What a picture's neighbours say about it: foreign pictures rarely come alone."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn.functional import normalize

from protorect.core.functional import predictions

NEIGHBOURS = 10
_SAME = 1 - 1e-6  # the cosine of a picture with itself, but for rounding


class Looked(NamedTuple):
    """Pictures and what was found about them.

    Parameters
    ----------
    rows
        (n, dim), their features.
    scores, cosines
        (n, ways), by the method, and with the rectified prototypes.
    """

    rows: Tensor
    scores: Tensor
    cosines: Tensor

    def part(self, which: slice) -> Looked:
        """Some of them."""
        return Looked(*(column[which] for column in self))


def company(pictures: Looked, pile: Looked) -> Tensor:
    """How like their class the nearest pictures of the pile with the same label are, (n,).

    It is the mean of their cosines with that class. The same picture is no neighbour; without
    any neighbour a picture keeps its own cosine.
    """
    labels, of_pile = predictions(pictures.scores), predictions(pile.scores)
    found = pictures.cosines.gather(1, labels[:, None]).squeeze(1)
    for label in sorted(set(labels.tolist())):
        members = (labels == label).nonzero().flatten()
        others = (of_pile == label).nonzero().flatten()
        near = normalize(pictures.rows[members], dim=-1) @ normalize(pile.rows[others], dim=-1).T
        near = near.masked_fill(near > _SAME, -2.0)
        nearest = near.topk(min(NEIGHBOURS, len(others)), dim=-1)
        counts = nearest.values > -2.0
        told = pile.cosines[others, label][nearest.indices] * counts
        known = counts.any(dim=-1)
        found[members[known]] = (told.sum(dim=-1) / counts.sum(dim=-1).clamp_min(1))[known]
    return found
