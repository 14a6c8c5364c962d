"""The headers of pictures: formats of phones, reduced scales, memory that decoding will need."""

import io
import struct
import sys
from functools import partial

import numpy as np
import pytest
from PIL import Image

from helpers.pictures import encoded, pixels
from protorect.images import open as opening
from protorect.images.decode import decode
from protorect.images.open import decode_smaller, memory_to_decode, open_picture
from protorect.images.stored import UnreadableError

SMOOTH = Image.fromarray(pixels(height=640, width=640))


def heic(image, **options):
    heif = pytest.importorskip("pillow_heif")
    file = io.BytesIO()
    heif.from_pillow(image).save(file, quality=95, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["AVIF", "JPEG2000", "HEIF", "MPO"])
def test_formats_of_phones_and_browsers(kind):
    data = heic(SMOOTH) if kind == "HEIF" else encoded(SMOOTH, kind)
    for size in (640, 40):
        expected = np.asarray(SMOOTH.resize((size, size), Image.Resampling.BICUBIC)).astype(int)
        assert abs(decode(data, size, 3).pixels - expected).mean() < 4
        assert decode(data, size, 1).pixels.shape == (size, size, 1)


@pytest.mark.parametrize("kind", ["AVIF", "WEBP", "HEIF"])
@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_exif_rotation_is_applied(kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    small = SMOOTH.resize((80, 80))
    upright = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_270}
    expected = small.transpose(upright.get(orientation, Image.Transpose.ROTATE_90))
    save = heic if kind == "HEIF" else partial(encoded, kind=kind)
    data = save(small, exif=exif.tobytes())
    assert abs(decode(data, 80, 3).pixels - np.asarray(expected).astype(int)).mean() < 5


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA"])
def test_modes_of_jpeg_2000(mode):
    result = decode(encoded(SMOOTH.convert(mode), "JPEG2000"), 40, 3).pixels
    expected = SMOOTH.convert(mode).convert("RGB").resize((40, 40), Image.Resampling.BICUBIC)
    assert abs(result - np.asarray(expected).astype(int)).mean() < 3


@pytest.mark.parametrize("kind", ["JPEG", "JPEG2000"])
def test_large_pictures_are_decoded_at_a_reduced_scale(kind):
    data = encoded(SMOOTH, kind)
    image = open_picture(data)
    decode_smaller(image, data, 70)
    assert memory_to_decode(image, data, 640 * 640) < 640 * 640
    image.load()
    assert image.size == (80, 80)


def test_two_hundred_megapixels():
    data = encoded(Image.new("L", (16320, 12240), 90), "JPEG")
    assert (decode(data, 40, 3).pixels == 90).all()


def test_a_gap_of_resolutions_that_jpeg_2000_does_not_store():
    data = encoded(SMOOTH, "JPEG2000", num_resolutions=1)
    assert decode(data, 20, 3).pixels.shape == (20, 20, 3)


def needed(data):
    image = open_picture(data)
    return memory_to_decode(image, data, image.size[0] * image.size[1])


def test_a_progressive_jpeg_needs_memory_for_its_coefficients():
    assert needed(encoded(SMOOTH, "JPEG")) == 4 * 640 * 640
    assert needed(encoded(SMOOTH, "JPEG", progressive=True)) == (4 + 3) * 640 * 640
    assert needed(encoded(SMOOTH, "JPEG", progressive=True, subsampling=0)) == (4 + 6) * 640 * 640


def test_a_jpeg_with_a_scan_for_each_channel_needs_it_too():
    data = encoded(SMOOTH, "JPEG")
    start = data.index(b"\xff\xda")
    several = data[:start] + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + data[start + 14 :]
    assert needed(several) == (4 + 3) * 640 * 640


def test_a_jpeg_of_too_many_scans():
    data = encoded(SMOOTH, "JPEG", progressive=True)
    with pytest.raises(UnreadableError, match="more than 100 scans"):
        decode(data[:-2] + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" * 101 + data[-2:], 40, 3)


def test_a_tile_larger_than_its_picture_counts():
    data = encoded(Image.new("RGB", (20, 20)), "TIFF", compression="tiff_lzw")
    assert needed(data) < 5000
    image = open_picture(data)
    image.tag_v2[322], image.tag_v2[323] = 12_000, 12_000
    assert memory_to_decode(image, data, 400) > 4 * 12_000**2


def test_a_header_of_jpeg_2000_that_contradicts_its_data():
    data = bytearray(encoded(SMOOTH, "JPEG2000"))
    start = data.index(b"\xff\x4f\xff\x51")
    struct.pack_into(">II", data, start + 8, 60_000, 60_000)
    with pytest.raises(UnreadableError, match="claims 60000 x 60000 pixels"):
        decode(bytes(data), 40, 3)


def test_a_picture_that_needs_more_than_all_memory(monkeypatch):
    monkeypatch.setattr("protorect.images.memory.decoding_memory", lambda: 2**20)
    with pytest.raises(UnreadableError, match="640 x 640 pixels, which take .* MB to decode"):
        decode(encoded(SMOOTH), 40, 3)


def test_heic_without_its_decoder(monkeypatch):
    data = heic(SMOOTH)
    opening._heif_opener.cache_clear()
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    with pytest.raises(UnreadableError, match=r"pip install 'protorect\[heic\]'"):
        decode(data, 40, 3)
    monkeypatch.undo()
    assert decode(data, 40, 3).width == 640


def test_bands_give_the_same_pixels_as_the_whole(monkeypatch):
    wide = Image.fromarray(pixels(height=900, width=1111)).convert("RGBA")
    wide.putalpha(Image.linear_gradient("L").resize(wide.size))
    data = encoded(wide)
    whole = decode(data, 50, 3).pixels
    monkeypatch.setattr("protorect.images.decode._BAND", 5000)
    np.testing.assert_array_equal(decode(data, 50, 3).pixels, whole)
    white = Image.alpha_composite(Image.new("RGBA", wide.size, "white"), wide).convert("RGB")
    square = white.resize((50, 50), Image.Resampling.BICUBIC, (105.5, 0, 1005.5, 900))
    assert abs(whole.astype(int) - np.asarray(square)).max() < 4
