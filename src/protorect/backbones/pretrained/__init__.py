"""Weights that come with the package, each beside a card that says what made it.

`protorect publish` makes both files from a run and its measured results.
"""

from __future__ import annotations

from pathlib import Path


def pretrained_weights() -> dict[str, Path]:
    """Files of weights by the name they are asked for."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.safetensors"))}
