"""Vision models of Hugging Face as backbones; their weights are read from safetensors only."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from protorect.backbones.base import Backbone
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.weights import TrainedBackbone
from protorect.errors import DataError, MissingExtraError

DEFAULT_SIZE = 224


class PooledModel(Backbone):
    """A vision model of transformers and the one vector a picture that it offers.

    Parameters
    ----------
    name
        What it was asked for as.
    size
        Of its pictures.
    model
        The model.
    pooled
        Whether what it calls its pooled output was trained.
    """

    def __init__(self, name: str, size: int, model: nn.Module, pooled: bool) -> None:
        super().__init__(name, 3, size)
        self.model = model
        self._pooled = pooled

    def features(self, pictures: Tensor) -> Tensor:
        """The image features, the pooled output, or the first token of the last layer."""
        images = getattr(self.model, "get_image_features", None)
        found = self.model(pictures) if images is None else images(pictures)
        if isinstance(found, Tensor):
            return found.flatten(1)
        pooled = getattr(found, "pooler_output", None)
        if pooled is not None and self._pooled:
            return pooled.flatten(1)  # type: ignore[no-any-return]
        hidden: Tensor = found.last_hidden_state
        return hidden[:, 0] if hidden.ndim == 3 else hidden.flatten(2).mean(dim=-1)


def load_hugging_face(name: str) -> TrainedBackbone:
    """A model by its name on the hub, or from a folder, with the preprocessing it states."""
    try:
        from transformers import AutoModel
        from transformers.image_processing_base import ImageProcessingMixin
        from transformers.utils import logging
    except ImportError as error:
        raise MissingExtraError(
            "hf: models need transformers, which is not installed: pip install 'protorect[hf]'."
        ) from error
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        stated, _ = ImageProcessingMixin.get_image_processor_dict(name)
        model, report = AutoModel.from_pretrained(
            name, trust_remote_code=False, use_safetensors=True, output_loading_info=True
        )
    except Exception as error:  # many kinds: no such name, no network, no safetensors, ...
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"cannot load the model hf:{name}: {reason}") from error
    pooled = not any("pool" in missing for missing in report["missing_keys"])
    backbone = PooledModel(f"hf:{name}", _size(stated), model.eval(), pooled)
    return TrainedBackbone(backbone, _preprocessing(stated))


def _size(stated: dict[str, Any]) -> int:
    """The side of the square that a picture is cut or resized to."""
    size = stated.get("crop_size") if stated.get("do_center_crop") else None
    size = size or stated.get("size") or DEFAULT_SIZE
    if isinstance(size, dict):
        size = size.get("height") or size.get("shortest_edge") or DEFAULT_SIZE
    return int(size)


def _preprocessing(stated: dict[str, Any]) -> Preprocessing:
    if not stated.get("do_normalize", True):
        return Preprocessing((0.0,) * 3, (1.0,) * 3)
    mean, std = stated.get("image_mean", (0.5,) * 3), stated.get("image_std", (0.5,) * 3)
    return Preprocessing(tuple(mean), tuple(std))
