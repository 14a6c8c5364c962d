"""Small copies of whole pictures, and pictures in a format that browsers show."""

import io
from typing import NamedTuple

from PIL import Image

from protorect.images.decode import eight_bit_opaque, open_picture, readable, rotation

LONGEST_SIDE, QUALITY = 320, 80
_SHOWN = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}

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
        image = open_picture(data)
        size, turn = image.size, rotation(image)
        if max(size) >= 2 * LONGEST_SIDE:  # JPEG is decoded faster at a fraction of its size
            image.draft(None, (LONGEST_SIDE, LONGEST_SIDE))
        image.load()
        if image.format == "TIFF":  # which Pillow turns upright when it is loaded
            size = image.size
        image = eight_bit_opaque(image).convert("RGB")
        image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.BICUBIC, reducing_gap=2.0)
        if turn is not None:
            image = image.transpose(turn)
        if turn in _SIDEWAYS:
            size = size[::-1]
        output = io.BytesIO()
        image.save(output, "WEBP", quality=QUALITY, method=2)
    return Thumbnail(output.getvalue(), *size)


def browser_picture(data: bytes) -> tuple[bytes, str]:
    """The picture and its media type; converted to PNG if browsers do not show its format.

    Raises UnreadableError.
    """
    with readable(data):
        image = open_picture(data)
        if image.format in _SHOWN:
            return data, _SHOWN[image.format]
        image.load()
        output = io.BytesIO()
        eight_bit_opaque(image).convert("RGB").save(output, "PNG")
    return output.getvalue(), "image/png"
