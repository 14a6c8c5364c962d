"""The data of the demonstration are what `benchmarks.demo_data` makes of the originals."""

import lzma
import tarfile

from benchmarks.demo_data import TARGET, groceries, omniglot


def test_the_drawings(real_data):
    embedded = lzma.decompress((TARGET / "omniglot-test.xz").read_bytes())
    assert omniglot(real_data("omniglot")) == embedded


def test_the_photographs(real_data):
    with tarfile.open(real_data("grocery_photos.tar")) as archive:
        assert groceries(archive) == (TARGET / "groceries.zip").read_bytes()
