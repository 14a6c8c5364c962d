"""EfficientNet-Lite recognizes real photographs.

The photographs are classes through PROTORECT_DATA, a folder with `grocery_photos.tar`.
"""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch.nn import functional

from protorect.backbones.base import Backbone
from protorect.backbones.efficientnet_lite_weights import PACKAGES, read_tensors
from protorect.backbones.registry import build

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("PROTORECT_DATA", ROOT.parent / "shared" / "data"))
PHOTOGRAPHS = DATA / "grocery_photos.tar"
EACH = 6

# The ImageNet class that shows the same thing. Satsumas are oranges; of apples there is one only.
IMAGENET = {
    "Banana": 954,
    "Zucchini": 939,
    "Satsumas": 950,  # orange
    "Golden-Delicious": 948,  # Granny Smith
}

pytestmark = pytest.mark.skipif(
    not PHOTOGRAPHS.is_file(),
    reason=f"no {PHOTOGRAPHS}: set PROTORECT_DATA to the folder that holds grocery_photos.tar",
)


def preprocessed(network: Backbone, photograph: Image.Image) -> torch.Tensor:
    """The middle square of a photograph, 7/8 of the shorter side, as the network takes it."""
    upright = ImageOps.exif_transpose(photograph).convert("RGB")
    square = ImageOps.fit(upright, (network.size * 8 // 7,) * 2, Image.Resampling.BICUBIC)
    edge = (square.width - network.size) // 2
    middle = square.crop((edge, edge, edge + network.size, edge + network.size))
    pixels = torch.from_numpy(np.array(middle)).permute(2, 0, 1) / 255
    return network.preprocessing(pixels[None])[0]


def photographs(of: str) -> list[Image.Image]:
    with tarfile.open(PHOTOGRAPHS) as tar:
        names = sorted(name for name in tar.getnames() if f"/{of}/" in name)
        files = [tar.extractfile(name) for name in names[:EACH]]
        pictures = [Image.open(file) for file in files]
        for picture in pictures:
            picture.load()
    return pictures


@pytest.fixture(scope="module", params=PACKAGES)
def network(request) -> Backbone:
    return build(request.param)


@pytest.fixture(scope="module")
def top5(network) -> dict[str, torch.Tensor]:
    """The five most probable ImageNet classes of every photograph, (EACH, 5), best first."""
    tensors = read_tensors(network.name)
    weight, bias = tensors["_fc.weight"], tensors["_fc.bias"]
    classes = {}
    for grocery in IMAGENET:
        batch = torch.stack([preprocessed(network, picture) for picture in photographs(grocery)])
        assert batch.shape == (EACH, 3, network.size, network.size)
        with torch.no_grad():
            classes[grocery] = functional.linear(network(batch), weight, bias).topk(5).indices
    return classes


@pytest.mark.parametrize("grocery", IMAGENET)
def test_the_top_5_classes_contain_the_right_one(top5, grocery):
    right = (top5[grocery] == IMAGENET[grocery]).any(dim=1)
    assert right.sum() >= EACH - 1


def test_the_top_1_class_of_a_banana_is_banana(top5):
    assert (top5["Banana"][:, 0] == IMAGENET["Banana"]).sum() >= EACH - 1


def test_predictions_depend_on_the_photograph(top5):
    """A network that always predicts the same five classes could pass the tests above."""
    for grocery, other in [("Banana", "Satsumas"), ("Zucchini", "Golden-Delicious")]:
        assert (top5[grocery] == IMAGENET[other]).any(dim=1).float().mean() < 0.5
