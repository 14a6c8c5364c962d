"""Square roots of features that cannot be negative, task by task.

Features after a ReLU are skewed, their square roots less so (Hu, Gripon, Pateux: "Leveraging the
Feature Distribution in Transfer-based Few-Shot Learning", ICANN 2021).
"""

import torch
from torch import Tensor


def has_no_negatives(*parts: Tensor) -> Tensor:
    """Whether a task has no negative feature, (tasks,), in parts (tasks, n of the part, dim)."""
    return torch.stack([part.amin(dim=(-2, -1)) >= 0 for part in parts if part.shape[1]]).all(dim=0)


def square_roots(rows: Tensor, square_root: Tensor) -> Tensor:
    """Square roots of the features of some tasks, (tasks,) of True or False; 0 of negative ones."""
    # The square root of exactly 0 takes many times as long as that of any other number.
    roots = rows.clamp_min(torch.finfo(rows.dtype).tiny).sqrt_()
    return roots if square_root.all() else torch.where(square_root[:, None, None], roots, rows)
