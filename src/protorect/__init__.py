"""Few-shot image classification by prototype rectification."""

__version__ = "0.1.0"
