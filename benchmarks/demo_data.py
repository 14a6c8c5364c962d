"""`python -m benchmarks.demo_data DATA`: make the data of `protorect demo` from the originals.

DATA has omniglot/images_background.zip and images_evaluation.zip as distributed, and
grocery_photos.tar, 20 class folders of the Grocery Store data set with its LICENSE.

- omniglot-test.xz: the 423 test characters of the published split, 20 drawings each, in the order
  of the split and of the file names. Every drawing is the raster of a PBM file: 105 rows of 105
  bits, 1 for ink, each padded to 14 bytes. `protorect prepare` makes the rotations.
- groceries.zip: the first ten classes in the order of the alphabet; of each, in the order of the
  SHA-256 of the file names, three examples and ten pictures, with a shorter side of 192 pixels.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageOps

from protorect.datasets.catalogue import DATASETS
from protorect.datasets.prepare import find_splits

TARGET = Path(__file__).parents[1] / "src" / "protorect" / "demo" / "data"
CLASSES, EXAMPLES, PICTURES = 10, 3, 10
SIDE, QUALITY = 192, 60


def main(data: Path, target: Path = TARGET) -> None:
    """Write both files and the license of the photographs."""
    compressed = lzma.compress(omniglot(data / "omniglot"), preset=9 | lzma.PRESET_EXTREME)
    (target / "omniglot-test.xz").write_bytes(compressed)
    with tarfile.open(data / "grocery_photos.tar") as archive:
        (target / "groceries.zip").write_bytes(groceries(archive))
        (target / "groceries.LICENSE").write_bytes(_read(archive, "grocery_photos/LICENSE"))


def omniglot(root: Path) -> bytes:
    """The drawings of the test characters as bits."""
    with TemporaryDirectory() as scratch:
        splits, _ = find_splits(DATASETS["omniglot"], root, Path(scratch), None, 0)
        rasters = []
        for pictures in splits["test"].values():
            for picture in pictures:
                image = Image.open(io.BytesIO(picture.read()))
                if image.mode != "1":
                    raise ValueError(f"{picture.path} is not black and white")
                rasters.append(np.packbits(~np.asarray(image), axis=-1).tobytes())
    return b"".join(rasters)


def groceries(archive: tarfile.TarFile) -> bytes:
    """An archive of examples/CLASS/*.jpg and pictures/CLASS/*.jpg."""
    by_class: dict[str, list[PurePosixPath]] = {}
    for path in map(PurePosixPath, archive.getnames()):
        if path.suffix == ".jpg":
            by_class.setdefault(path.parent.name, []).append(path)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as chosen:
        for name in sorted(by_class)[:CLASSES]:
            ordered = sorted(by_class[name], key=lambda path: _digest(path.name))
            for number, path in enumerate(ordered[: EXAMPLES + PICTURES]):
                part = "examples" if number < EXAMPLES else "pictures"
                entry = zipfile.ZipInfo(f"{part}/{name}/{path.name}")  # of a fixed date
                chosen.writestr(entry, _smaller(_read(archive, str(path))))
    return out.getvalue()


def _smaller(data: bytes) -> bytes:
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    scale = SIDE / min(image.size)
    size = round(image.width * scale), round(image.height * scale)
    out = io.BytesIO()
    resized = image.resize(size, Image.Resampling.LANCZOS)
    resized.save(out, "JPEG", quality=QUALITY, optimize=True, progressive=True)
    return out.getvalue()


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
