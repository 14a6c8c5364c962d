"""Open a picture without decoding it: its size, a smaller scale, and the memory it will need."""

import io
import struct
from collections.abc import Callable
from functools import cache

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    ExifTags,
    GifImagePlugin,
    ImageFile,
    Jpeg2KImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from protorect.images.formats import HEAD, picture_format
from protorect.images.stored import UnreadableError

NO_PICTURE = "not a picture in a format read here"
MAX_PIXELS = 2**28  # 268 megapixels; the cameras of phones have up to 200
_MAX_SCANS = 100  # of a progressive JPEG, which has about ten; each takes the time of a decoding


class _Gif(GifImagePlugin.GifImageFile):
    """A GIF of one frame: when it is opened, no memory is filled to dispose of that frame."""

    disposal_method = property(lambda _: 0, lambda _, value: None)


_Opener = Callable[[io.BytesIO, str], ImageFile.ImageFile]
# The formats of photographs and drawings. Of the others that Pillow reads, EPS runs a program and
# the rest are rarely meant as pictures. `Image.open` would refuse more than 179 megapixels, unless
# that were changed for the whole process.
_OPENERS: dict[str, _Opener] = {
    "AVIF": AvifImagePlugin.AvifImageFile,
    "BMP": BmpImagePlugin.BmpImageFile,
    "GIF": _Gif,
    "JPEG": JpegImagePlugin.jpeg_factory,
    "JPEG2000": Jpeg2KImagePlugin.Jpeg2KImageFile,
    "PNG": PngImagePlugin.PngImageFile,
    "PPM": PpmImagePlugin.PpmImageFile,
    "TIFF": TiffImagePlugin.TiffImageFile,
    "WEBP": WebPImagePlugin.WebPImageFile,
}
AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # each thread of ours decodes another picture
_BYTES_PER_PIXEL = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2}  # others have 4
# What the decoders themselves need for each pixel, measured with the largest kinds of pictures: two
# frames and a copy in WEBP, planes of up to 16 bits and a copy in AVIF and HEIF.
_WORKING_BYTES = {"WEBP": 14, "AVIF": 14, "HEIF": 14}
_JPEG2000_WORKING_BYTES = 7  # for each pixel and channel


def open_picture(data: bytes) -> ImageFile.ImageFile:
    """Recognise a picture by its content and read its header; raises UnreadableError."""
    kind = picture_format(data[:HEAD])
    if kind is None:
        raise UnreadableError(NO_PICTURE)
    opener = _heif_opener() if kind == "HEIF" else _OPENERS[kind]
    if kind == "JPEG2000":
        _check_size(*_codestream(data)[:2])
    image = opener(io.BytesIO(data), "")
    _check_size(*image.size)
    return image


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise UnreadableError(f"claims {width} x {height} pixels; at most {MAX_PIXELS:,} are read")


@cache
def _heif_opener() -> _Opener:
    try:
        import pillow_heif
    except ImportError as error:
        raise UnreadableError(
            "a HEIC picture, which needs another package: pip install 'protorect[heic]'"
        ) from error
    pillow_heif.options.DECODE_THREADS = 1  # each thread of ours decodes another picture
    opener: _Opener = pillow_heif.HeifImageFile
    return opener


def decode_smaller(image: ImageFile.ImageFile, data: bytes, side: float) -> None:
    """Let a picture be decoded with fewer pixels, where its format can, but no less than `side`.

    JPEG can be decoded at a half, a quarter or an eighth for a fraction of the time, JPEG 2000 at
    the scales it was stored in; HEIC may have a small copy beside the picture.
    """
    if isinstance(image, Jpeg2KImagePlugin.Jpeg2KImageFile):
        levels, scale = _codestream(data)[2], min(image.size) / side
        image.reduce = max(0, min(levels, int(scale).bit_length() - 1))
    else:
        image.draft(None, (int(side), int(side)))


def memory_to_decode(image: ImageFile.ImageFile, data: bytes, pixels: int) -> int:
    """Bytes that `image.load()` will need at most; `pixels` is their number at full scale.

    Raises UnreadableError if it would take too much work.
    """
    decoded = image.size[0] * image.size[1]
    each = _BYTES_PER_PIXEL.get(image.mode, 4)
    if isinstance(image, JpegImagePlugin.JpegImageFile):
        return decoded * each + _jpeg_coefficients(image, data, pixels)
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        rotated = int(image.tag_v2.get(ExifTags.Base.Orientation, 1) != 1)  # into a second picture
        return decoded * each * (1 + rotated) + _tiff_buffer(image)
    if isinstance(image, Jpeg2KImagePlugin.Jpeg2KImageFile):
        width, height, _, channels = _codestream(data)
        decoded = max(decoded, width * height) >> 2 * int(image._reduce)
        code_blocks = width * height // 16
        return decoded * (each + _JPEG2000_WORKING_BYTES * channels) + code_blocks + len(data)
    return decoded * (each + _WORKING_BYTES.get(image.format or "", 0)) + len(data)


def _jpeg_coefficients(image: JpegImagePlugin.JpegImageFile, data: bytes, pixels: int) -> int:
    """Bytes of all coefficients, which are kept if the pixels come in several scans."""
    try:
        scan = _segment(data, 2, 0xDA)
        several = "progressive" in image.info or data[scan + 4] < image.layers
    except (struct.error, IndexError):
        scan, several = 0, True
    if not several:
        return 0
    if data.count(b"\xff\xda", scan) > _MAX_SCANS:
        raise UnreadableError(f"a JPEG of more than {_MAX_SCANS} scans")
    samplings = [int(across * down) for _, across, down, _ in image.layer]
    return 2 * pixels * sum(samplings) // max(samplings)


def _segment(data: bytes, position: int, marker: int) -> int:
    """Position of the first segment with this marker; struct.error if there is none."""
    while True:
        ff, found, length = struct.unpack_from(">BBH", data, position)
        if ff != 0xFF:
            raise struct.error("no segment")
        if found == marker:
            return position
        position += 1 if found == 0xFF else 2 + int(length)


def _tiff_buffer(image: TiffImagePlugin.TiffImageFile) -> int:
    """Bytes of a strip or a tile; a tile may be larger than the picture."""
    tags, (width, height) = image.tag_v2, image.size
    bits = max(tags.get(TiffImagePlugin.BITSPERSAMPLE, (1,)))
    pixel = max(4, bits * tags.get(TiffImagePlugin.SAMPLESPERPIXEL, 1) // 8)
    if TiffImagePlugin.TILEWIDTH in tags:
        across, down = tags[TiffImagePlugin.TILEWIDTH], tags.get(TiffImagePlugin.TILELENGTH, 1)
    else:
        across, down = width, min(height, tags.get(TiffImagePlugin.ROWSPERSTRIP, height))
    return int(across * down * pixel)


def _codestream(data: bytes) -> tuple[int, int, int, int]:
    """Width, height, scales and channels of JPEG 2000, which its outer header may contradict."""
    start = data.find(b"\xff\x4f\xff\x51")
    if start < 0:
        raise UnreadableError("damaged (no JPEG 2000 data)")
    right, bottom, left, top = struct.unpack_from(">4I", data, start + 8)
    [channels] = struct.unpack_from(">H", data, start + 40)
    scales = data[_segment(data, start + 2, 0x52) + 9]  # in the coding style
    return right - left, bottom - top, scales, channels
