"""Rows of the pictures: their features in the leading principal components.

Everything a session computes of the pictures is made of inner products of their normalized
features, and 256 directions keep these: a session of 100,000 pictures fits into memory and answers
at once. The directions are those of the pictures themselves, so they depend on nothing else.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from protorect._utils.arrays import load_arrays, save_arrays
from protorect.errors import DataError
from protorect.labeling.picture_store import PictureStore

COMPONENTS = 256
_SAMPLES = 8192  # at most so many pictures, evenly spaced, determine the directions


@dataclass(frozen=True, eq=False)
class PictureRows:
    """The readable pictures among the first records of a store."""

    count: int  # of records in the store
    ids: NDArray[np.int64]  # (n,) the pictures, ascending
    rows: Tensor  # (n, components) float32, of unit length but for the components left out
    positions: NDArray[np.int64]  # (n,) their records in the store

    @classmethod
    @torch.inference_mode()
    def of(cls, store: PictureStore, count: int) -> Self:
        """Compute the rows of the first `count` records."""
        ids, positions = _readable(store, count)
        if not len(ids):
            return cls(count, ids, torch.empty(0, 0), positions)
        sample = positions[:: -(-len(positions) // _SAMPLES)]
        features = torch.from_numpy(store.features(sample))
        store.check_finite(features.numpy())
        root = bool((features >= 0).all())
        sample_rows = _normalized(features, root)
        covariance = sample_rows.T @ sample_rows
        directions = torch.linalg.eigh(covariance.double()).eigenvectors[:, -COMPONENTS:].float()
        blocks = (torch.from_numpy(block) for block in store.blocks(count))
        projected = torch.cat([_normalized(block, root) @ directions for block in blocks])
        rows = projected[torch.from_numpy(positions)]
        store.check_finite(rows.numpy())
        return cls(count, ids, rows, positions)

    @classmethod
    def load(cls, path: Path, store: PictureStore) -> Self | None:
        """Rows that `save` wrote, None if they are not those of this store."""
        try:
            stored = load_arrays(path, ("rows", "check"))
        except DataError:
            return None
        check, rows = stored["check"], stored["rows"]
        if check.shape != (2,) or check.dtype != np.int64 or check[0] != len(store):
            return None
        count = len(store)
        ids, positions = _readable(store, count)
        if (
            check[1] != store.check(count)
            or rows.dtype != np.float32
            or rows.shape[:1] != ids.shape
            or not np.isfinite(rows.sum())
        ):
            return None
        return cls(count, ids, torch.from_numpy(rows), positions)

    def save(self, path: Path, store: PictureStore) -> None:
        """Write the rows, so that the next session need not compute them."""
        check = np.array([self.count, store.check(self.count)], np.int64)
        save_arrays(path, rows=self.rows.numpy(), check=check)

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of pictures among the rows, -1 for one that is not among them."""
        if not len(self.ids):
            return np.full(len(ids), -1, np.int64)
        places = np.searchsorted(self.ids, ids).clip(max=len(self.ids) - 1)
        return np.where(self.ids[places] == ids, places, -1)


def _readable(store: PictureStore, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids, ascending, and records of the readable pictures; the last record of a picture counts."""
    index = store.index[:count]
    ids, last = np.unique(index["id"][::-1], return_index=True)
    positions = count - 1 - last
    is_readable = index["reason"][positions] == b""
    return ids[is_readable], positions[is_readable]


def _normalized(features: Tensor, root: bool) -> Tensor:
    """Unit rows; `root`: of the square roots, as `bd-cspn-plus` takes those of features >= 0."""
    if root:
        features = features.clamp_min(torch.finfo(features.dtype).tiny).sqrt()
    return normalize(features, dim=-1)
