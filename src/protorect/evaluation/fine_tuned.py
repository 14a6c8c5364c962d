"""Methods that fine-tune the network, on episodes of the pictures that features were made from."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from protorect._utils.manifest import differences
from protorect._utils.progress import Progress
from protorect._utils.tensors import usable_device
from protorect.backbones.base import Backbone
from protorect.backbones.cosine_classifier import CosineClassifier
from protorect.backbones.inference import batch_size, move_network, preprocess, uses_bfloat16
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.weights import TrainedBackbone
from protorect.core.functional import predictions
from protorect.datasets.packed import PackedDataset
from protorect.embedding.extract import provenance
from protorect.embedding.store import read_provenance
from protorect.errors import DataError, OptionError
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.result import Result
from protorect.methods import PictureMethod


@dataclass(frozen=True, eq=False)
class Pictures:
    """A trained network with its preprocessing, and the pictures of a feature table."""

    backbone: Backbone
    preprocessing: Preprocessing
    images: NDArray[np.uint8]  # (n, height, width, channels), in the order of the features
    base_classifier: CosineClassifier | None = None

    @classmethod
    def behind(
        cls,
        features: str | os.PathLike[str],
        network: str | os.PathLike[str],
        packed: str | os.PathLike[str],
    ) -> Self:
        """The network and pictures that `protorect extract` made features from, checked.

        `network` is a run, a file of weights or the name of pretrained weights, `packed` the folder
        that `protorect prepare` made.
        """
        stored = read_provenance(Path(features))
        if "split" not in stored:
            raise DataError(
                f"{features} does not say which pictures it was made from. Write it "
                "with `protorect extract`."
            )
        if "files" in stored:
            raise DataError(
                f"{features} was made from class folders, and fine-tuning needs packed pictures. "
                "Use `protorect prepare`, then `protorect extract` on what it made."
            )
        trained, data = TrainedBackbone.load(network), PackedDataset.open(packed)
        expected = provenance(trained, data, str(stored["split"]))
        if differ := differences(stored, expected):
            raise DataError(
                f"{features} was not made by {network} from {packed}: {differ}. Give what "
                "`protorect extract` was given."
            )
        images = data.split(expected["split"]).images
        preprocessing = trained.preprocessing_for(data.mean)
        return cls(trained.backbone, preprocessing, images, trained.base_classifier)

    def of_rows(self, rows: NDArray[Any], device: str | torch.device) -> Tensor:
        """The pictures of these rows as input of the network, (n, channels, size, size)."""
        return preprocess(self.backbone, self.images[rows], self.preprocessing, device)

    def network_for(self, method: PictureMethod, bfloat16: bool = False) -> nn.Module:
        """The network that the method fine-tunes; OptionError if there is no such network."""
        if method.on_logits and self.base_classifier is None:
            raise OptionError(
                f"{method.name} needs the base classifier, which these weights do not contain. "
                "Give a run of `protorect train`, or use layer=features."
            )
        classifier = self.base_classifier if method.on_logits else None
        return _Network(self.backbone, classifier, bfloat16)


class _Network(nn.Module):
    """A backbone, or the rectified logits of a classifier on it, in float32."""

    def __init__(self, backbone: Backbone, classifier: nn.Module | None, bfloat16: bool) -> None:
        super().__init__()
        self.backbone, self.classifier, self._in_bfloat16 = backbone, classifier, bfloat16

    def forward(self, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self._in_bfloat16):
            features: Tensor = self.backbone(images)
        features = features.float()
        return features if self.classifier is None else self.classifier(features).relu()


def evaluate_fine_tuned(
    pictures: Pictures,
    methods: Sequence[PictureMethod],
    *,
    shot: Sequence[int],
    episodes: Episodes,
    precision: str = "auto",
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Run every method on the same episodes, shot by shot, as `evaluate` does.

    Episodes are not batched: each fine-tunes a network of its own, which keeps the processor busy.
    """
    device = usable_device(device or "cpu")
    bfloat16 = uses_bfloat16(precision, device)
    networks = {one.name: pictures.network_for(one, bfloat16) for one in methods}
    for network in networks.values():
        move_network(network, device, torch.channels_last)
    images_at_once = batch_size(pictures.backbone)
    total = len(shot) * len(methods) * len(episodes)
    results: list[Result] = []
    for k, chosen in product(shot, methods):
        at_shot, seconds = episodes.with_shot(k), 0.0
        labels = torch.arange(episodes.way, device=device).repeat_interleave(k)
        predicted = np.empty(episodes.query.shape, dtype=np.int32)
        for i in range(len(episodes)):
            support = pictures.of_rows(at_shot.support[i].ravel(), device)
            query = pictures.of_rows(at_shot.query[i], device)
            start = time.perf_counter()
            scores = chosen(networks[chosen.name], support, labels, query, images_at_once)
            predicted[i] = predictions(scores).cpu().numpy()
            seconds += time.perf_counter() - start
            if progress is not None:
                progress(len(results) * len(episodes) + i + 1, total)
        results.append(Result.of(chosen.name, at_shot, predicted, seconds))
    return results
