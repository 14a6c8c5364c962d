"""The cosine classifier that a backbone is trained with, eq. (1) and (2)."""

import torch
from torch import Tensor, nn


class CosineClassifier(nn.Module):
    """Logits are a learnable scale times the cosines of a feature with each class's weight.

    `scale` is the initial value of tau in eq. (1).
    """

    def __init__(self, dim: int, classes: int, scale: float = 10.0) -> None:
        super().__init__()
        # Only the direction matters; unit length in expectation gives gradients of moderate size.
        self.weight = nn.Parameter(torch.randn(classes, dim) / dim**0.5)
        self.scale = nn.Parameter(torch.tensor(float(scale)))

    def forward(self, features: Tensor) -> Tensor:
        """Logits tau x cosine, (n, dim) -> (n, classes), in float32 or better."""
        # bfloat16 has 8 bits: a cosine times 10 would be off by up to 0.04, so no autocast here.
        with torch.autocast(features.device.type, enabled=False):
            wide = torch.promote_types(features.dtype, torch.float32)
            cosines = unit_length(features.to(wide)) @ unit_length(self.weight.to(wide)).T
            return self.scale * cosines


def unit_length(rows: Tensor) -> Tensor:
    """Rows (..., dim) scaled to unit length; a zero row stays zero, so its cosines are 0."""
    length = rows.norm(dim=-1, keepdim=True)
    # Dividing by 1, and not by something tiny, keeps the gradient of a zero row moderate.
    return rows / torch.where(length > 0, length, 1)
