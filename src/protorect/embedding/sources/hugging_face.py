"""Vision models of Hugging Face as backbones; their weights are read from safetensors only."""

from typing import Any, ClassVar

from torch import Tensor, nn

from protorect._utils.parameters import LARGEST_SIZE, parameter
from protorect.backbones.base import Backbone
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.weights import TrainedBackbone
from protorect.embedding.sources.embedder import NetworkOptions
from protorect.errors import DataError, needs_extra

DEFAULT_SIZE = 224


class HuggingFaceOptions(NetworkOptions):
    """Options of hf: models."""

    kind: ClassVar[str] = "option of hf:"

    trust_remote_code: bool = parameter(
        False, "Run the Python code that comes with the model, with all rights of yours."
    )


class PooledModel(Backbone):
    """A vision model of transformers; without `pooler_trained`, its pooled output is not used."""

    def __init__(self, name: str, size: int, model: nn.Module, pooler_trained: bool) -> None:
        super().__init__(name, 3, size)
        self.model = model
        self._pooler_trained = pooler_trained

    def features(self, images: Tensor) -> Tensor:
        """Image features, else trained pooled output, else first token or mean over positions."""
        image_features = getattr(self.model, "get_image_features", self.model)
        output = image_features(images)
        if isinstance(output, Tensor):
            return output.flatten(1)
        pooled = getattr(output, "pooler_output", None)
        if pooled is not None and self._pooler_trained:
            return pooled.flatten(1)  # type: ignore[no-any-return]
        hidden: Tensor = output.last_hidden_state
        return hidden[:, 0] if hidden.ndim == 3 else hidden.flatten(2).mean(dim=-1)


def load_hugging_face(name: str, options: HuggingFaceOptions) -> TrainedBackbone:
    """Load a model by its name on the hub, or from a folder, with its own preprocessing."""
    with needs_extra("hf: models need transformers", "hf"):
        from transformers import AutoModel, PreTrainedConfig
        from transformers.image_processing_base import ImageProcessingMixin
        from transformers.utils import logging
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        model_config, _ = PreTrainedConfig.get_config_dict(name)
        own_code = bool(model_config.get("auto_map"))
        if own_code and not options.trust_remote_code:
            raise DataError(
                f"hf:{name} comes with Python code that would have to run. If you trust it, say "
                f"so: hf:{name}:trust_remote_code=true."
            )
        config, _ = ImageProcessingMixin.get_image_processor_dict(name)
        model, report = AutoModel.from_pretrained(
            name,
            trust_remote_code=options.trust_remote_code,
            use_safetensors=True,
            output_loading_info=True,
        )
    except DataError:
        raise
    except Exception as error:  # many types: no such name, no network, no safetensors, ...
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"cannot load the model hf:{name}: {reason}") from error
    pooler_trained = not any("pool" in key for key in report["missing_keys"])
    size, preprocessing = _checked_size(name, config), _preprocessing(name, config)
    backbone = PooledModel(f"hf:{name}", size, model.eval(), pooler_trained)
    return TrainedBackbone(backbone, preprocessing)


def _checked_size(name: str, config: dict[str, Any]) -> int:
    """The side of the square that an image is cropped or resized to."""
    size = config.get("crop_size") if config.get("do_center_crop") else None
    size = size or config.get("size") or DEFAULT_SIZE
    if isinstance(size, dict):
        size = size.get("height") or size.get("shortest_edge") or DEFAULT_SIZE
    if not isinstance(size, int) or not 1 <= size <= LARGEST_SIZE:
        raise DataError(
            f"hf:{name} takes pictures of size {size!r}; at most {LARGEST_SIZE} pixels per side "
            "are used."
        )
    return size


def _preprocessing(name: str, config: dict[str, Any]) -> Preprocessing:
    if not config.get("do_normalize", True):
        return Preprocessing((0.0,) * 3, (1.0,) * 3)
    mean, std = config.get("image_mean", (0.5,) * 3), config.get("image_std", (0.5,) * 3)
    try:
        numbers = Preprocessing(tuple(map(float, mean)), tuple(map(float, std)))
        if len(numbers.mean) == len(numbers.std) == 3 and min(numbers.std) > 0:
            return numbers
    except (TypeError, ValueError):
        pass
    raise DataError(
        f"hf:{name} has image_mean {mean!r} and image_std {std!r}; both must be three numbers, "
        "those of std above 0."
    )
