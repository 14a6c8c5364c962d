"""Decode pictures to square uint8 arrays, within one limit of memory for all threads."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image

from protorect._utils.memory import return_freed_memory
from protorect.errors import ProtorectError
from protorect.images.memory import PIXEL_MEMORY
from protorect.images.open import NO_PICTURE, decode_smaller, memory_to_decode, open_picture
from protorect.images.stored import Box, UnreadableError

_UPRIGHT = {  # EXIF orientation: what turns the picture upright
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Decode a JPEG at no less than this multiple of the final size, then resize. Features have a cosine
# of 0.999 with those of full decoding, and phone-size photographs take half the time.
_DETAIL = 1.4
_GAP = 3  # average whole pixels until the rest is no more than this multiple of the final size
_BAND = 2**19  # pixels that are converted at a time
_LARGE = 2**26  # bytes; the memory of a larger picture is returned to the system when it is done
_BYTES_PER_BAND = 20 * _BAND  # with transparency, five copies


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
    pixels of `shape` (height, width, 3). A `box` in pixels of the stored picture is cropped instead
    of the central square, and resized to a square whatever its shape. Decoding waits until other
    threads leave enough memory. Raises UnreadableError.
    """
    mode = "L" if channels == 1 else "RGB"
    with readable(data):
        if shape is not None:
            image = Image.fromarray(np.frombuffer(data, np.uint8).reshape(shape))
            width, height = image.size
            square = _square(image, size, mode, box)
        else:
            with loaded(data, None if box else _DETAIL * size) as (image, (width, height)):
                turn = rotation(image)  # once loaded: a PNG may have its EXIF after the pixels
                square = _square(image, size, mode, box)
            square = square if turn is None else square.transpose(turn)
        pixels = np.frombuffer(square.tobytes(), np.uint8).reshape(size, size, channels)
    return Decoded(pixels, width, height)


def image_size(data: bytes) -> tuple[int, int]:
    """Width and height of an encoded picture, of which only the head is decoded."""
    with readable(data):
        return open_picture(data).size


@contextmanager
def readable(data: bytes) -> Iterator[None]:
    """Turn whatever decoders raise into an UnreadableError."""
    if not data:
        raise UnreadableError("empty file")
    # What Pillow warns of raises an error below, or does not matter. The filter is never removed:
    # `catch_warnings` restores the wrong filters when several threads use it.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    try:
        yield
    except (UnreadableError, ProtorectError):
        raise
    except Exception as error:  # decoders raise anything at all on damaged files
        raise UnreadableError(_reason(error)) from error


@contextmanager
def loaded(data: bytes, side: float | None = None) -> Iterator[tuple[Image.Image, tuple[int, int]]]:
    """Load a picture within the memory for pixels, and give it with its full width and height.

    It may have fewer pixels, but no less than `side` in each direction.
    """
    image = open_picture(data)
    width, height = image.size
    if side is not None and min(width, height) >= 2 * side:
        decode_smaller(image, data, side)
    needed = memory_to_decode(image, data, width * height) + _BYTES_PER_BAND
    if needed > PIXEL_MEMORY.total:
        raise UnreadableError(
            f"{width} x {height} pixels, which take {ceil(needed / 2**20):,} MB to decode; "
            f"{PIXEL_MEMORY.exceeded_by(needed)}"
        )
    with PIXEL_MEMORY.reserve(needed):
        try:
            image.load()
            yield image, (width, height)
        finally:  # before the memory is another thread's
            image.close()
            if needed > _LARGE:
                return_freed_memory()


def _square(image: Image.Image, size: int, mode: str, box: Box | None) -> Image.Image:
    """The box or the central square, in eight bits, resized."""
    left, top, right, bottom = box or _central_square(*image.size)
    factors = (max(1, int((right - left) / size / _GAP)), max(1, int((bottom - top) / size / _GAP)))
    if image.mode != mode or "transparency" in image.info or factors != (1, 1):
        around = (int(left), int(top), ceil(right), ceil(bottom))
        image = shrunk(image, around, factors, mode)
        left, right = ((edge - around[0]) / factors[0] for edge in (left, right))
        top, bottom = ((edge - around[1]) / factors[1] for edge in (top, bottom))
    whole = all(edge == int(edge) for edge in (left, top))
    if whole and right - left == bottom - top == size:
        return image.crop((int(left), int(top), int(left) + size, int(top) + size))
    return image.resize((size, size), Image.Resampling.BICUBIC, (left, top, right, bottom))


def shrunk(
    image: Image.Image, box: tuple[int, int, int, int], factors: tuple[int, int], mode: str
) -> Image.Image:
    """Cut out a box, convert it and average whole pixels: some rows at a time, to save memory."""
    left, top, right, bottom = box
    across, down = factors
    size = (ceil((right - left) / across), ceil((bottom - top) / down))
    result = Image.new(mode, size)
    convert = _converter(image)
    rows = down * max(1, _BAND // (right - left) // down)
    for start in range(top, bottom, rows):
        band = convert(image.crop((left, start, right, min(start + rows, bottom))))
        band = band if band.mode == mode else band.convert(mode)
        band = band if factors == (1, 1) else band.reduce(factors)
        result.paste(band, (0, (start - top) // down))
    return result


def _central_square(width: int, height: int) -> Box:
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def rotation(image: Image.Image) -> Image.Transpose | None:
    """What turns a loaded picture upright, if anything."""
    if image.format == "TIFF":  # Pillow rotates these itself
        return None
    try:
        return _UPRIGHT.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # the picture behind a damaged EXIF block may be intact
        return None


def _converter(image: Image.Image) -> Callable[[Image.Image], Image.Image]:
    """What converts parts of this picture to eight bits per channel, and transparency to white."""
    if image.mode.startswith("I") or image.mode == "F":
        extremes: Any = image.getextrema()
        return lambda part: Image.fromarray(_eight_bit(np.asarray(part), *extremes))
    return _opaque


def _opaque(image: Image.Image) -> Image.Image:
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        transparent = image.convert("RGBA")
        white = Image.new("RGBA", transparent.size, "white")
        return Image.alpha_composite(white, transparent).convert("RGB")
    if image.mode == "P":  # to RGB even if grayscale is asked for: a palette may hold colors
        return image.convert("RGB")
    return image


def _eight_bit(values: NDArray[Any], low: float, high: float) -> NDArray[np.uint8]:
    """Scale values to 0 .. 255; `low` and `high` are the extremes of the whole picture."""
    if values.dtype.kind == "f":
        if not (low >= 0 and high <= 255) or np.isnan(values).any():
            raise UnreadableError(f"floating-point values from {low:g} to {high:g}, not 0 to 255")
        scale = 255.0 if high <= 1 else 1.0
        return np.asarray(np.rint(values * scale), np.uint8)
    if low < 0 or high > 65535:
        raise UnreadableError(f"values from {low:g} to {high:g}, not 0 to 65535")
    return np.asarray((values.astype(np.uint32) + 128) // 257, np.uint8)


def _reason(error: Exception) -> str:
    """Describe an error of Pillow or numpy in a few words."""
    if isinstance(error, Image.DecompressionBombError):
        return "more pixels than are read in this format"
    text = " ".join(str(error).split())
    if "not identified" in text:  # it only begins like a picture
        return NO_PICTURE
    if "truncated" in text.lower():
        return "truncated"
    return f"damaged ({text[:100] or type(error).__name__})"
