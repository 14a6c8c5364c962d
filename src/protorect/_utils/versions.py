"""Versions and hardware that a result may depend on."""

import os
import platform

import numpy as np
import torch

from protorect import __version__


def versions() -> dict[str, str]:
    """Versions of protorect, Python, torch and numpy, threads and processor, for stored results."""
    return {
        "protorect": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": str(torch.get_num_threads()),
        "processor": platform.machine() or os.name,
    }
