"""Small copies of whole pictures, and pictures for browsers."""

import io

import pytest
from PIL import Image

from helpers.bombs import png
from helpers.pictures import encoded, pixels
from protorect.images.stored import UnreadableError
from protorect.images.thumbnail import LONGEST_SIDE, browser_picture, make_thumbnail

WIDE = Image.fromarray(pixels(height=500, width=1500))


def opened(data):
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "AVIF", "JPEG2000"])
def test_a_thumbnail_shows_the_whole_picture_upright(kind):
    exif = Image.Exif()
    exif[0x0112] = 6
    options = {} if kind == "JPEG2000" else {"exif": exif}
    made = make_thumbnail(encoded(WIDE, kind, **options))
    tall = bool(options)
    assert (made.width, made.height) == ((500, 1500) if tall else (1500, 500))
    small = opened(made.data)
    assert small.format == "WEBP"
    assert max(small.size) == LONGEST_SIDE
    assert (small.size[1] > small.size[0]) == tall


def test_pictures_that_browsers_show_are_not_converted():
    for kind, media_type in (("JPEG", "image/jpeg"), ("AVIF", "image/avif")):
        data = encoded(WIDE, kind)
        assert browser_picture(data) == (data, media_type)
    shown, media_type = browser_picture(encoded(WIDE, "JPEG2000"))
    assert (opened(shown).format, opened(shown).size, media_type) == ("PNG", WIDE.size, "image/png")


def test_a_picture_that_is_too_large(monkeypatch):
    monkeypatch.setattr("protorect.images.memory.decoding_memory", lambda: 2**20)
    with pytest.raises(UnreadableError, match="which take .* MB to decode"):
        make_thumbnail(png(1000, 1000, 8, 6))
