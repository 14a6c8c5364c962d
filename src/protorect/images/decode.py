"""Decode pictures to square uint8 arrays; refuse unknown formats and too many pixels."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

from protorect.images.stored import Box, UnreadableError

MAX_PIXELS = 100_000_000
# The formats of photographs and drawings. Of the others that Pillow reads, EPS runs a program and
# the rest are rarely meant as pictures.
_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
_UPRIGHT = {  # EXIF orientation: what turns the picture upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_DETAIL = 2  # decode a JPEG at no less than this multiple of the final size, then resize


@dataclass(frozen=True, eq=False)
class Decoded:
    """A decoded picture."""

    pixels: NDArray[np.uint8]  # (size, size, channels)
    width: int  # of the picture before cropping, in pixels
    height: int


def decode(
    data: bytes,
    size: int,
    channels: int,
    shape: tuple[int, int, int] | None = None,
    box: Box | None = None,
) -> Decoded:
    """Decode, rotate upright, crop to the central square and resize with antialiasing.

    `channels` is 1 for grayscale and 3 for color. `data` is the content of a picture file, or raw
    pixels of `shape` (height, width, 3). A `box` in pixels of the stored picture is cut out instead
    of the central square, and resized to a square whatever its shape. Raises UnreadableError.
    """
    with readable(data):
        image = open_picture(data, shape)
        width, height = image.size
        square = _square(image, size, "L" if channels == 1 else "RGB", box)
    pixels = np.frombuffer(square.tobytes(), np.uint8).reshape(size, size, channels)
    return Decoded(pixels, width, height)


@contextmanager
def readable(data: bytes) -> Iterator[None]:
    """Turn whatever decoding raises into an UnreadableError."""
    if not data:
        raise UnreadableError("empty file")
    # What Pillow warns of raises an error below, or does not matter. The filter is never removed:
    # `catch_warnings` restores the wrong filters when several threads use it.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    try:
        yield
    except UnreadableError:
        raise
    except Exception as error:  # decoders raise anything at all on damaged files
        raise UnreadableError(_reason(error)) from error


def open_picture(data: bytes, shape: tuple[int, int, int] | None = None) -> Image.Image:
    """Open an encoded picture, or raw pixels of `shape`, without decoding it."""
    if shape is not None:
        return Image.fromarray(np.frombuffer(data, np.uint8).reshape(shape))
    image = Image.open(io.BytesIO(data), formats=_FORMATS)
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise UnreadableError(f"claims {width} x {height} pixels; at most {MAX_PIXELS:,} are read")
    return image


def image_size(data: bytes) -> tuple[int, int]:
    """Width and height of an encoded picture, of which only the head is decoded."""
    with readable(data):
        return open_picture(data).size


def _square(image: Image.Image, size: int, mode: str, box: Box | None) -> Image.Image:
    turn = rotation(image)
    if box is None and min(image.size) >= 2 * _DETAIL * size:
        # JPEG can be decoded at a half, a quarter or an eighth for a fraction of the time.
        image.draft(None, (_DETAIL * size, _DETAIL * size))
    image.load()
    image = eight_bit_opaque(image)
    if image.mode != mode:
        image = image.convert(mode)
    left, top, right, bottom = box or _central_square(*image.size)
    whole = all(edge == int(edge) for edge in (left, top))
    if whole and right - left == bottom - top == size:
        image = image.crop((int(left), int(top), int(left) + size, int(top) + size))
    else:
        box = (left, top, right, bottom)
        image = image.resize((size, size), Image.Resampling.BICUBIC, box, reducing_gap=3.0)
    return image if turn is None else image.transpose(turn)


def _central_square(width: int, height: int) -> Box:
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def rotation(image: Image.Image) -> Image.Transpose | None:
    """What turns a picture upright, if anything."""
    if image.format == "TIFF":  # Pillow rotates these itself
        return None
    try:
        return _UPRIGHT.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # the picture behind a damaged EXIF block may be intact
        return None


def eight_bit_opaque(image: Image.Image) -> Image.Image:
    """Convert to eight bits per channel, and transparency to white."""
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_eight_bit(np.asarray(image)))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        transparent = image.convert("RGBA")
        white = Image.new("RGBA", transparent.size, "white")
        return Image.alpha_composite(white, transparent).convert("RGB")
    if image.mode == "P":  # to RGB even if grayscale is asked for: a palette may hold colors
        return image.convert("RGB")
    return image


def _eight_bit(values: NDArray[Any]) -> NDArray[np.uint8]:
    low, high = float(values.min()), float(values.max())
    if values.dtype.kind == "f":
        if not (low >= 0 and high <= 255):  # also refuses NaN
            raise UnreadableError(f"floating-point values from {low:g} to {high:g}, not 0 to 255")
        scale = 255.0 if high <= 1 else 1.0
        return np.asarray(np.rint(values * scale), np.uint8)
    if low < 0 or high > 65535:
        raise UnreadableError(f"values from {low:g} to {high:g}, not 0 to 65535")
    return np.asarray((values.astype(np.uint32) + 128) // 257, np.uint8)


def _reason(error: Exception) -> str:
    """Describe an error of Pillow or numpy in a few words."""
    if isinstance(error, UnidentifiedImageError):
        return "not a picture in a format read here"
    if isinstance(error, Image.DecompressionBombError):
        return f"claims more than {MAX_PIXELS:,} pixels"
    text = " ".join(str(error).split())
    if "truncated" in text.lower():
        return "truncated"
    return f"damaged ({text[:100] or type(error).__name__})"
