"""A packed data set of noise and untrained weights."""

import json

import numpy as np
import torch

from protorect._utils.checkpoint import save_tensors
from protorect.backbones.registry import build
from protorect.datasets.packed import FORMAT, VERSION

SIDE, CLASSES = 28, 4


def pack_noise(
    folder, count, seed=0, *, classes=CLASSES, splits=("test",), dataset="folder", side=SIDE
):
    """A packed data set as `protorect prepare` makes it: splits of grayscale noise."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    described = {}
    for split in splits:
        images = rng.integers(0, 256, (count, side, side, 1), dtype=np.uint8)
        np.save(folder / f"{split}.npy", images)
        np.save(folder / f"{split}-labels.npy", np.arange(count) * classes // count)
        names = [f"{split} class {label}" for label in range(classes)]
        digest = f"{split} of seed {seed}"
        described[split] = {"images": count, "class_names": names, "digest": digest}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "dataset": dataset,
        "size": side,
        "channels": 1,
        "flip": False,
        "crop_padding": 0,
        "mean": [0.5],
        "std": [0.3],
        "unreadable": [],
        "left_out": [],
        "splits": described,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def save_weights(path, seed=0, **changes):
    torch.manual_seed(seed)
    backbone = build("conv64", channels=1, size=SIDE)
    card = {"kind": "backbone", "backbone": "conv64", "channels": 1, "size": SIDE}
    card |= {"mean": [0.5], "std": [0.3], "data": "folder"}
    save_tensors(path, backbone.state_dict(), card | changes)
    return path
