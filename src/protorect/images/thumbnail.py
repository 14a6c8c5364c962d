"""Small copies of whole pictures, and pictures in a format that browsers show."""

import io
from typing import NamedTuple

from PIL import Image

from protorect.images.decode import loaded, readable, rotation, shrunk
from protorect.images.open import open_picture

LONGEST_SIDE, QUALITY = 320, 80
_LONGEST_SHOWN = 4096  # pixels of a picture that is converted for browsers
_SHOWN = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}
_SHOWN |= {"AVIF": "image/avif"}

_SIDEWAYS = (
    Image.Transpose.TRANSPOSE,
    Image.Transpose.TRANSVERSE,
    Image.Transpose.ROTATE_90,
    Image.Transpose.ROTATE_270,
)


class Thumbnail(NamedTuple):
    """A small copy of a picture as WebP, and the size of the picture itself, upright."""

    data: bytes
    width: int
    height: int


def make_thumbnail(data: bytes) -> Thumbnail:
    """A copy of the whole picture, upright, at most LONGEST_SIDE pixels wide and high.

    Raises UnreadableError.
    """
    with readable(data):
        with loaded(data, LONGEST_SIDE) as (image, size):
            turn = rotation(image)
            if image.format == "TIFF":  # which Pillow turns upright when it is loaded
                size = image.size
            small = _small(image, 2 * LONGEST_SIDE)
        small.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.BICUBIC)
        if turn is not None:
            small = small.transpose(turn)
        if turn in _SIDEWAYS:
            size = size[::-1]
        output = io.BytesIO()
        small.save(output, "WEBP", quality=QUALITY, method=2)
    return Thumbnail(output.getvalue(), *size)


def browser_picture(data: bytes) -> tuple[bytes, str]:
    """The picture and its media type; converted to PNG if browsers do not show its format.

    Raises UnreadableError.
    """
    with readable(data):
        kind = open_picture(data).format
        if kind in _SHOWN:
            return data, _SHOWN[kind]
        output = io.BytesIO()
        with loaded(data) as (image, _):
            turn = rotation(image)
            shown = _small(image, _LONGEST_SHOWN)
        shown = shown if turn is None else shown.transpose(turn)
        shown.save(output, "PNG")
    return output.getvalue(), "image/png"


def _small(image: Image.Image, longest: int) -> Image.Image:
    """A copy in RGB with less than twice `longest` pixels in each direction."""
    factor = max(1, max(image.size) // longest)
    return shrunk(image, (0, 0, *image.size), (factor, factor), "RGB")
