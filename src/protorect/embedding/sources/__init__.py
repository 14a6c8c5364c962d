"""Networks that turn decoded pictures into features, by the name of where they come from."""

from protorect.embedding.sources.source import DEFAULT_SOURCE, Embedder, load_embedder

__all__ = ["DEFAULT_SOURCE", "Embedder", "load_embedder"]
