"""Pictures of any kind as square uint8 arrays; nothing enormous is ever decoded."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, UnidentifiedImageError

from protorect.images.stored import UnreadableError

MAX_PIXELS = 100_000_000
# The formats of photographs and drawings. Others that Pillow reads run programs (EPS) or are
# rarely what a person means.
_FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM")
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_DETAIL = 2  # reduced decoding leaves this many times the size for the final, smooth resize


@dataclass(frozen=True)
class Decoded:
    """A picture ready to be packed, and what it was.

    Parameters
    ----------
    pixels
        (size, size, channels) uint8.
    width, height
        In pixels, as stored.
    """

    pixels: NDArray[np.uint8]
    width: int
    height: int


def decode(
    data: bytes, size: int, channels: int, shape: tuple[int, int, int] | None = None
) -> Decoded:
    """Decode, turn upright, cut to the central square and resize with antialiasing.

    Parameters
    ----------
    data
        The file's bytes, or raw pixels if `shape` is given.
    size
        Side of the result.
    channels
        1 for grey, 3 for colour.
    shape
        (height, width, channels) of raw pixels.

    Raises
    ------
    UnreadableError
        With the reason in a few words.
    """
    if not data:
        raise UnreadableError("empty file")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow warns of is either refused below or harmless
        try:
            image = _from_raw(data, shape) if shape else _open(data)
            width, height = image.size
            square = _square(image, size, "L" if channels == 1 else "RGB")
        except UnreadableError:
            raise
        except Exception as error:  # decoders raise anything at all on damaged files
            raise UnreadableError(_reason(error)) from error
    pixels = np.frombuffer(square.tobytes(), np.uint8).reshape(size, size, channels)
    return Decoded(pixels, width, height)


def histogram(pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each value occurs, (n, height, width, channels) -> (channels, 256)."""
    column = pixels.reshape(-1, *pixels.shape[2:])  # one tall picture
    counts = _picture(column).histogram()
    return np.array(counts, np.int64).reshape(-1, 256)


def _open(data: bytes) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(data), formats=_FORMATS)
    except Image.DecompressionBombError as error:
        raise UnreadableError(f"claims more than {MAX_PIXELS:,} pixels") from error
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise UnreadableError(f"claims {width} x {height} pixels; at most {MAX_PIXELS:,} are read")
    return image


def _from_raw(data: bytes, shape: tuple[int, int, int]) -> Image.Image:
    return _picture(np.frombuffer(data, np.uint8).reshape(shape))


def _picture(pixels: NDArray[np.uint8]) -> Image.Image:
    return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


def _square(image: Image.Image, size: int, mode: str) -> Image.Image:
    turn = _turn(image)
    if min(image.size) >= 2 * _DETAIL * size:
        # JPEG can be decoded at a half, a quarter or an eighth for a fraction of the time.
        image.draft(None, (_DETAIL * size, _DETAIL * size))
    image.load()
    flat = _flat(image)
    if flat.mode != mode:
        flat = flat.convert(mode)
    width, height = flat.size
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    box = (left, top, left + side, top + side)
    if flat.size == (size, size):
        square = flat
    elif side == size and left == int(left) and top == int(top):
        square = flat.crop((int(left), int(top), int(left) + side, int(top) + side))
    else:
        square = flat.resize((size, size), Image.Resampling.BICUBIC, box, reducing_gap=3.0)
    return square if turn is None else square.transpose(turn)


def _turn(image: Image.Image) -> Image.Transpose | None:
    if image.format == "TIFF":  # Pillow turns these itself
        return None
    try:
        return _UPRIGHT.get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # a damaged EXIF block says nothing about the picture
        return None


def _flat(image: Image.Image) -> Image.Image:
    """The picture in eight bits a channel, without transparency (laid on white)."""
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_eight_bits(np.asarray(image)))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        clear = image.convert("RGBA")
        white = Image.new("RGBA", clear.size, "white")
        return Image.alpha_composite(white, clear).convert("RGB")
    if image.mode == "P":  # a palette may hold colours even if greys are asked for
        return image.convert("RGB")
    return image


def _eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    low, high = float(values.min()), float(values.max())
    if values.dtype.kind == "f":
        if not (low >= 0 and high <= 255):  # not a number fails here too
            raise UnreadableError(f"floating-point values from {low:g} to {high:g}, not 0 to 255")
        scale = 255.0 if high <= 1 else 1.0
        return np.asarray(np.rint(values * scale), np.uint8)
    if low < 0 or high > 65535:
        raise UnreadableError(f"values from {low:g} to {high:g}, not 0 to 65535")
    return np.asarray((values.astype(np.uint32) + 128) // 257, np.uint8)


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "not a picture in a format read here"
    text = " ".join(str(error).split())
    if "truncated" in text.lower() or "Truncated" in text:
        return "truncated"
    return f"damaged ({text[:100] or type(error).__name__})"
