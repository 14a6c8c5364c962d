"""Thumbnails of pictures, kept in the cache by content."""

import struct

from protorect.embedding.cache import FeatureCache
from protorect.images.stored import StoredPicture
from protorect.images.thumbnail import Thumbnail, make_thumbnail

_MAKER = "thumbnail 1"  # of the cache; the number changes with the way thumbnails are made
_SIZE = struct.Struct("<II")


def cached_thumbnail(cache: FeatureCache, picture: StoredPicture, digest: bytes) -> Thumbnail:
    """The thumbnail of a picture whose file has this SHA-256, made if the cache does not have it.

    Raises UnreadableError.
    """
    stored = cache.get_bytes(_MAKER, digest)
    if stored is not None and len(stored) > _SIZE.size:
        return Thumbnail(stored[_SIZE.size :], *_SIZE.unpack_from(stored))
    with picture.content() as data:
        made = make_thumbnail(data)
    cache.put_bytes(_MAKER, digest, _SIZE.pack(made.width, made.height) + made.data)
    return made
