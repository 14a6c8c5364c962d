"""Embedding of a project's pictures in a background thread, by the one pipeline."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from protorect.embedding.cache import FeatureCache
from protorect.embedding.pipeline import PICTURES_PER_BLOCK, Block, embed_at, embedded_blocks
from protorect.embedding.sources import Embedder
from protorect.errors import ProtorectError
from protorect.images.stored import StoredPicture, UnreadableError
from protorect.labeling.picture_store import PictureStore, Stored
from protorect.labeling.project import Listed
from protorect.labeling.thumbnails import cached_thumbnail

_SECONDS_BETWEEN_REPORTS = 0.5


class BackgroundEmbedding:
    """Fills the store of a project; `problem` is the reason if it stopped before the end.

    Thumbnails are made in the same pass, while the file is still in the system's memory.
    """

    def __init__(
        self,
        ids: Sequence[int],
        listed: Sequence[Listed],
        embedder: Embedder | None,
        store: PictureStore,
        cache: FeatureCache,
        report: Callable[[], None],
        finished: Callable[[], None],
    ) -> None:
        self._ids, self._listed = ids, [listed[one] for one in ids]
        self._pictures = [one.stored() for one in self._listed]
        self._embedder, self._store, self._cache = embedder, store, cache
        self._report, self._finished = report, finished
        self._sizes: dict[int, tuple[int, int]] = {}
        self._stop = threading.Event()
        self._started, self._done, self.problem = time.monotonic(), 0, ""
        self._thread = threading.Thread(target=self._run, name="protorect-embed", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the blocks under way."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def progress(self) -> dict[str, Any] | None:
        """How far it is; None if there is nothing to embed."""
        if not self._ids:
            return None
        seconds = max(time.monotonic() - self._started, 1e-3)
        rate = self._done / seconds
        left = (len(self._ids) - self._done) / rate if rate else None
        return {
            "done": self._done,
            "total": len(self._ids),
            "per_second": round(rate, 1),
            "seconds_left": None if left is None else round(left),
        }

    def _run(self) -> None:
        try:
            if self._ids and self._embedder is not None:
                self._embed(self._embedder)
        except (ProtorectError, OSError, MemoryError) as error:
            self.problem = f"embedding has stopped after {self._done} pictures: {error}"
        finally:
            self._finished()

    def _embed(self, embedder: Embedder) -> None:
        self._started = reported = time.monotonic()

        def embed_block(places: range) -> Block:
            block = embed_at(self._pictures, embedder, self._cache, places)
            for place, digest in zip(places, block.digests, strict=True):
                if place not in block.problems:
                    self._sizes[place] = self._size(self._pictures[place], digest)
            return block

        count = len(self._ids)
        size = max(1, min(PICTURES_PER_BLOCK, -(-count // torch.get_num_threads())))
        with embedded_blocks(embed_block, range(count), size) as blocks:
            for block in blocks:
                self._keep(block)
                if self._stop.is_set():
                    return
                if time.monotonic() - reported >= _SECONDS_BETWEEN_REPORTS:
                    reported = time.monotonic()
                    self._report()

    def _keep(self, block: Block) -> None:
        stored = [
            Stored(
                self._ids[place],
                digest,
                *self._sizes.pop(place, (0, 0)),
                self._listed[place].size,
                self._listed[place].changed,
                block.problems.get(place, ""),
            )
            for place, digest in zip(block.pictures, block.digests, strict=True)
        ]
        self._store.append(stored, block.features)
        self._done = block.pictures.stop

    def _size(self, picture: StoredPicture, digest: bytes) -> tuple[int, int]:
        """Make the thumbnail of a picture; its width and height."""
        try:
            thumbnail = cached_thumbnail(self._cache, picture, digest)
        except UnreadableError:
            return (0, 0)
        return thumbnail.width, thumbnail.height
