"""The episodes by which the best epoch is chosen."""

import numpy as np
import pytest
import torch

from protorect import evaluate
from protorect.backbones.inference import embed
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.registry import build
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import prepare
from protorect.training.config import TrainingConfig
from protorect.training.validation import Validation

CONFIG = TrainingConfig(validation_episodes=40)


def test_the_accuracy_is_that_of_5_way_5_shot_episodes_of_the_validation_classes(packed):
    data = PackedDataset.open(packed)
    torch.manual_seed(0)
    backbone = build("conv64", channels=3, size=28)
    preprocessing = Preprocessing(tuple(data.mean), tuple(data.std))
    validation = Validation.of(data, CONFIG)
    accuracy = validation.accuracy(backbone, preprocessing, bfloat16=False, device="cpu")

    pictures = data.split("val")
    features = embed(backbone, pictures.images, preprocessing)
    expected = {
        shot: evaluate(
            features, pictures.labels, "cspn", way=5, shot=shot, query=15, episodes=40, seed=0
        )[0]
        for shot in (1, 5)
    }
    assert accuracy["validation"] == pytest.approx(expected[5].accuracy)
    assert accuracy["validation_ci95"] == pytest.approx(expected[5].ci95)
    assert abs(expected[1].accuracy - expected[5].accuracy) > 1  # so that the wrong shot would fail


def divided(packed, tmp_path, fractions):
    source = next(packed.parent.glob("stripes*"))
    prepare("folder", source, tmp_path / "packed", size=28, split=fractions, workers=1)
    return PackedDataset.open(tmp_path / "packed")


def test_few_validation_classes_give_episodes_of_fewer_ways(packed, tmp_path):
    data = divided(packed, tmp_path, (0.5, 1 / 6, 1 / 3))
    episodes = Validation.of(data, CONFIG).episodes
    assert (episodes.way, episodes.shot, episodes.query_per_class) == (3, 5, 15)


@pytest.mark.parametrize(("pictures", "shot", "query"), [(24, 5, 15), (12, 5, 7), (4, 3, 1)])
def test_few_pictures_give_fewer_shots_and_queries(packed, pictures, shot, query):
    data = PackedDataset.open(packed)
    validation = Validation.of(_Reduced(data, pictures), CONFIG)
    assert (validation.episodes.shot, validation.episodes.query_per_class) == (shot, query)


def test_without_enough_pictures_there_is_no_validation(packed, tmp_path):
    data = PackedDataset.open(packed)
    assert Validation.of(_Reduced(data, 1), CONFIG) is None
    assert Validation.of(divided(packed, tmp_path, (0.5, 0.0, 0.5)), CONFIG) is None


class _Reduced:
    """A data set with only the first pictures of each validation class."""

    splits = ("val",)

    def __init__(self, data, pictures):
        split = data.split("val")
        rows = np.concatenate(
            [np.flatnonzero(split.labels == label)[:pictures] for label in np.unique(split.labels)]
        )
        self._split = type(split)(split.images[rows], split.labels[rows], split.class_names, "")

    def split(self, name):
        return self._split
