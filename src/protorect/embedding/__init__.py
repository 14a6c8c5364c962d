"""Features of pictures by a trained backbone, in a file or store that knows what made it."""

from protorect.embedding.extract import Extraction, extract

__all__ = ["Extraction", "extract"]
