"""A network on one batch in memory, and the pictures on disk that it is compared with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from protorect.backbones.base import Backbone
from protorect.backbones.cosine_classifier import CosineClassifier
from protorect.backbones.inference import move_network
from protorect.backbones.registry import build
from protorect.datasets.packed import FORMAT, MANIFEST, VERSION, PackedDataset

CLASSES = 64
Clock = Callable[[], float]


@dataclass(frozen=True)
class NetworkCase:
    """Pictures of one shape, their augmentation, and the batches of one round."""

    size: int
    channels: int
    batch: int
    crop_padding: int
    flip: bool
    steps: int
    name: str = "conv64"

    def batch_in_memory(self) -> torch.Tensor:
        """(batch, channels, size, size), in the memory format of the network."""
        images = torch.randn(self.batch, self.channels, self.size, self.size)
        return images.contiguous(memory_format=torch.channels_last)

    def backbone(self) -> Backbone:
        """The network with initial weights."""
        torch.manual_seed(0)
        backbone = build(self.name, channels=self.channels, size=self.size)
        move_network(backbone, "cpu", torch.channels_last)
        return backbone

    def packed(self, folder: Path) -> PackedDataset:
        """The pictures of one round, in the format of `protorect prepare`."""
        each = -(-self.batch * self.steps // CLASSES)
        shape = (CLASSES * each, self.size, self.size, self.channels)
        folder.mkdir(parents=True)
        pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
        np.save(folder / "train.npy", pixels)
        np.save(folder / "train-labels.npy", np.repeat(np.arange(CLASSES), each))
        record = {
            "images": len(pixels),
            "digest": "",
            "class_names": [f"class {number}" for number in range(CLASSES)],
        }
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "dataset": "noise",
            "size": self.size,
            "channels": self.channels,
            "flip": self.flip,
            "crop_padding": self.crop_padding,
            "mean": [0.5] * self.channels,
            "std": [0.29] * self.channels,
            "unreadable": [],
            "left_out": [],
            "splits": {"train": record},
        }
        (folder / MANIFEST).write_text(json.dumps(manifest))
        return PackedDataset.open(folder)


def picture_shape(case: dict[str, Any]) -> str:
    """Such as "28 x 28 x 1"."""
    return f"{case['size']} x {case['size']} x {case['channels']}"


def bare_training(
    case: NetworkCase, bfloat16: bool, clock: Clock = time.perf_counter
) -> Callable[[], float]:
    """Forward, backward and optimizer step on the same batch, repeated; images/s."""
    backbone = case.backbone()
    head = CosineClassifier(backbone.dim, CLASSES)
    parameters = nn.ModuleList([backbone, head]).train().parameters()
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4)
    images, labels = case.batch_in_memory(), torch.arange(case.batch) % CLASSES

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            logits = head(backbone(images))
        loss = cross_entropy(logits.float(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return lambda: _rate(step, case, clock)


def bare_forward(case: NetworkCase, bfloat16: bool) -> Callable[[], float]:
    """The forward pass on the same batch, repeated; images/s."""
    backbone, images = case.backbone().eval(), case.batch_in_memory()

    @torch.inference_mode()
    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
            backbone(images)

    return lambda: _rate(step, case)


def _rate(step: Callable[[], None], case: NetworkCase, clock: Clock = time.perf_counter) -> float:
    start = clock()
    for _ in range(case.steps):
        step()
    return case.steps * case.batch / (clock() - start)
