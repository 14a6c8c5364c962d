"""Weights that come with the package, each with a card that says how it was made.

`protorect publish` makes both files from a run and its measured results.
"""

from pathlib import Path


def pretrained_weights() -> dict[str, Path]:
    """Paths of the weights by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.safetensors"))}
