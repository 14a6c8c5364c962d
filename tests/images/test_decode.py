"""Decoding pictures of every kind, and files that are not pictures."""

import struct
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from helpers.pictures import encoded, pixels
from protorect.images.decode import decode
from protorect.images.stored import UnreadableError

GRADIENT = np.tile(np.linspace(0, 255, 40).astype(np.uint8), (40, 1))


def decoded(data, size=40, channels=3):
    return decode(data, size, channels).pixels


def test_a_picture_of_the_right_size_is_not_changed():
    picture = pixels(height=40, width=40)
    np.testing.assert_array_equal(decoded(encoded(Image.fromarray(picture))), picture)


def test_the_central_square_is_cropped():
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = 200
    assert (decoded(encoded(Image.fromarray(wide)), size=20) == 200).all()


def test_shrinking_is_antialiased():
    stripes = np.zeros((84, 84, 3), np.uint8)
    stripes[:, ::2] = 255
    middle = decoded(encoded(Image.fromarray(stripes)), size=21)[5:-5, 5:-5]
    assert abs(middle.astype(int) - 127).max() < 12


def test_a_large_jpeg_is_decoded_at_reduced_size_and_matches_a_full_resize():
    picture = Image.fromarray(pixels(height=800, width=800))
    small = np.asarray(picture.resize((40, 40), Image.Resampling.BICUBIC)).astype(int)
    reduced = decode(encoded(picture, "JPEG", quality=95), 40, 3)
    assert abs(reduced.pixels - small).max() < 12
    assert (reduced.width, reduced.height) == (800, 800)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF"])
def test_exif_rotation_is_applied(orientation, kind):
    upright = np.zeros((40, 40, 3), np.uint8)
    upright[:20, :20] = 250  # bright in the top left, half as bright on the top right
    upright[:20, 20:] = 120
    undo = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, 1),
        7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
        8: lambda a: np.rot90(a, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(undo(upright)))
    result = decoded(encoded(stored, kind, exif=exif)).astype(int)
    assert abs(result - upright).mean() < 6


def test_cmyk():
    picture = Image.fromarray(pixels(height=40, width=40))
    result = decoded(encoded(picture.convert("CMYK"), "JPEG", quality=95)).astype(int)
    assert abs(result - np.asarray(picture)).mean() < 6


def test_sixteen_bits_are_scaled_not_clipped():
    deep = Image.fromarray(GRADIENT.astype(np.uint16) * 257)
    assert deep.mode.startswith("I")
    np.testing.assert_array_equal(decoded(encoded(deep), channels=1)[..., 0], GRADIENT)
    np.testing.assert_array_equal(decoded(encoded(deep, "TIFF"), channels=3)[..., 2], GRADIENT)


def test_floating_point():
    one = Image.fromarray((GRADIENT / 255).astype(np.float32))
    np.testing.assert_array_equal(decoded(encoded(one, "TIFF"), channels=1)[..., 0], GRADIENT)
    with pytest.raises(UnreadableError, match="floating-point values"):
        decoded(encoded(Image.fromarray(np.full((9, 9), np.nan, np.float32)), "TIFF"))


def test_one_bit_and_grayscale():
    half = Image.fromarray(GRADIENT > 127)
    np.testing.assert_array_equal(
        decoded(encoded(half), channels=1)[..., 0], 255 * (GRADIENT > 127)
    )
    gray = decoded(encoded(Image.fromarray(GRADIENT)), channels=3)
    np.testing.assert_array_equal(gray, np.repeat(GRADIENT[..., None], 3, axis=2))


def test_palette_colors():
    red = Image.new("P", (40, 40), 1)
    red.putpalette([0, 0, 0, 200, 10, 20])
    assert (decoded(encoded(red)) == [200, 10, 20]).all()
    transparent = encoded(red, transparency=1)
    assert (decoded(transparent) == 255).all()


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparency_becomes_white(mode):
    clear = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    clear.paste((0, 0, 0, 255), (0, 0, 40, 20))
    result = decoded(encoded(clear.convert(mode)))
    assert (result[:20] == 0).all()
    assert (result[20:] == 255).all()


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_the_first_frame_of_an_animation_is_decoded(kind):
    frames = [Image.new("RGB", (40, 40), color) for color in ("red", "blue")]
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    assert abs(decoded(data).astype(int) - [255, 0, 0]).max() < 6


def huge_png(width, height):
    """A PNG that claims enormous dimensions and has almost no data."""

    def part(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + part(b"IHDR", header)
        + part(b"IDAT", zlib.compress(b"\0" * 99))
        + part(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [16_385, 20_000, 60_000])
def test_enormous_dimensions_are_an_error_before_decoding(side, monkeypatch):
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: pytest.fail("it was decoded"))
    with pytest.raises(UnreadableError, match="claims .*pixels"):
        decoded(huge_png(side, side))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (b"This is text, whatever it is called.", "not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
        (encoded(kind="JPEG")[:-200], "truncated"),
        (encoded()[:-60], "truncated"),
        (encoded(kind="JPEG")[:30], "."),
    ],
    ids=["empty", "text", "eps", "cut jpeg", "cut png", "jpeg header"],
)
def test_the_reason_why_a_file_is_unreadable(data, reason):
    with pytest.raises(UnreadableError, match=reason):
        decoded(data)


def test_raw_pixels():
    raw = pixels(height=40, width=40)
    np.testing.assert_array_equal(decode(raw.tobytes(), 40, 3, raw.shape).pixels, raw)
    with pytest.raises(UnreadableError, match="damaged"):
        decode(raw.tobytes()[:-1], 40, 3, raw.shape)


def test_decoding_in_threads_does_not_silence_other_warnings():
    data = encoded(kind="JPEG")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: decoded(data), range(400)))
    with pytest.raises(UserWarning, match="of the caller"):
        warnings.warn("of the caller", stacklevel=1)
