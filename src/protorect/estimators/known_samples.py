"""Samples that a classifier was fitted to, recognized when they are predicted."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import numpy as np
import torch
from torch import Tensor

from protorect.estimators.base import blocks_of_rows
from protorect.estimators.inputs import Array


@dataclass(frozen=True, eq=False)
class KnownSamples:
    """Unlabeled samples of the fit with the scores that they got together."""

    hashes: Tensor  # (n,), sorted; one number per sample, equal for equal ones
    scores: Tensor  # (n, n_classes), in the order of X_unlabeled
    order: Tensor  # (n,), position of each hash in X_unlabeled

    @classmethod
    def of(cls, samples: Array, scores: Tensor) -> Self:
        """Remember samples (n, n_features)."""
        parts = [_hashes(block[0].numpy()) for _, block in blocks_of_rows(samples, samples.dtype)]
        hashes, order = torch.sort(
            torch.cat([torch.empty(0, dtype=torch.int64), *parts]), stable=True
        )
        first = torch.searchsorted(hashes, hashes)
        repeated = first != torch.arange(len(hashes))
        if repeated.any():  # equal samples get one answer, that of the first
            scores = scores.clone()
            scores[order[repeated]] = scores[order[first[repeated]]]
        return cls(hashes, scores.contiguous(), order)

    def find(self, samples: Array) -> tuple[Tensor, Tensor]:
        """Scores of those samples that are known, and which of all are new (n,)."""
        hashes = _hashes(samples)
        if not len(self.hashes):
            return self.scores, torch.ones(len(samples), dtype=torch.bool)
        positions = torch.searchsorted(self.hashes, hashes).clamp_(max=len(self.hashes) - 1)
        new = self.hashes[positions] != hashes
        return self.scores[self.order[positions[~new]]], new


def _hashes(samples: Array) -> Tensor:
    """One 64-bit number per row, equal for equal rows of any floating type."""
    rows = samples.astype(np.float64) + 0.0  # -0 becomes 0
    digests = b"".join(blake2b(row.data, digest_size=8).digest() for row in rows)
    return torch.from_numpy(np.frombuffer(digests, np.int64).copy())
