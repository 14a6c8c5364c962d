"""Small pictures, and folders of them."""

import io
from pathlib import Path

import numpy as np
from PIL import Image


def pixels(seed=0, height=40, width=50):
    """Return smooth colors, which JPEG and resizing change little."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height)))


def encoded(image=None, kind="PNG", **options):
    """Return the bytes of a picture file."""
    if image is None:
        image = Image.fromarray(pixels())
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def class_folders(root, classes, each=3, suffix=".png"):
    """Write root/<class>/<number>.png, all of them different."""
    root = Path(root)
    seed = 0
    for name in classes:
        (root / name).mkdir(parents=True)
        for number in range(each):
            kind = {".png": "PNG", ".jpg": "JPEG", ".ppm": "PPM"}[suffix]
            data = encoded(Image.fromarray(pixels(seed)), kind)
            (root / name / f"{number}{suffix}").write_bytes(data)
            seed += 1
    return root


def contents(folder):
    """Return the bytes of every file in a folder by its relative path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }
