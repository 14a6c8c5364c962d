"""Training of a feature extractor with a cosine classifier on base classes."""
