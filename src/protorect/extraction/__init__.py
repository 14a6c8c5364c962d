"""Features of pictures by a trained backbone, in a file or store that knows what made it."""

from protorect.extraction.extract import Extraction, extract
from protorect.extraction.extractor import Extractor

__all__ = ["Extraction", "Extractor", "extract"]
