"""The training recipe, from its defaults, a TOML file and `name=value` settings."""

import math
import os
from collections.abc import Iterable
from typing import ClassVar, Literal

from protorect._utils.documents import read_toml
from protorect._utils.parameters import PRECISIONS, Parameters, parameter
from protorect._utils.text import printable
from protorect.backbones.registry import BACKBONES
from protorect.errors import OptionError, naming


class TrainingConfig(Parameters):
    """The training recipe; the defaults are what the paper states, and our choice otherwise.

    Examples
    --------
    >>> import protorect
    >>> protorect.TrainingConfig(epochs=12).updated({"batch_size": 64}).batch_size
    64
    """

    kind: ClassVar[str] = "setting"

    backbone: str = parameter("conv64", "Network to train.", choices=BACKBONES)
    seed: int = parameter(
        0,
        "Random seed of the initial weights, the order of the pictures and their augmentation.",
        maximum=2**63 - 1,  # torch has it in 64 bits
    )
    epochs: int = parameter(60, "Number of epochs.", minimum=1)
    batch_size: int = parameter(
        256,
        "Pictures per step, at least: those that are left over from the whole batches of an epoch "
        "are shared among its steps, so that a step may have nearly twice as many. Exactly, if "
        "steps_per_epoch is given.",
        minimum=2,
    )
    steps_per_epoch: int | None = parameter(
        None, "Steps per epoch; none for one pass over the pictures.", minimum=1
    )
    rates: tuple[tuple[float, float], ...] = parameter(
        ((0, 0.1), (10, 0.01), (20, 0.001), (40, 0.0001)),
        "Learning rate from each epoch on. A one-cycle schedule has three points and linear "
        "interpolation.",
        pair=("epoch", "rate"),
        below=math.inf,
    )
    between_rates: Literal["hold", "linear", "cosine"] = parameter(
        "hold", "Learning rate between two points: that of the first, or interpolated per step."
    )
    sizes: tuple[tuple[int, int], ...] = parameter(
        (),
        "Side to which training pictures are reduced from each epoch on, which takes less time; "
        "empty for full size. The last side must be that of the data set.",
        pair=("epoch", "side"),
    )
    momentum: float = parameter(0.9, "Momentum of the gradient descent.", below=1)
    nesterov: bool = parameter(True, "Whether the momentum is Nesterov's.")
    weight_decay: float = parameter(5e-4, "Factor of the L2 penalty of the weights.")
    label_smoothing: float = parameter(0.0, "Share of a label given to all classes.", below=1)
    crop_padding: int | None = parameter(
        None, "Pixels of padding on each side for random crops; none for that of the data set."
    )
    flip: bool | None = parameter(
        None, "Whether pictures are mirrored at random; none for that of the data set."
    )
    smallest_scale: float = parameter(
        1.0, "Below 1, random crops show this part of the side or more.", above=0, maximum=1
    )
    color: float = parameter(
        0.0,
        "Largest relative change of brightness, contrast and saturation.",
        below=1,
        aliases=("colour",),
    )
    precision: str = parameter(
        "auto",
        "Number format of the network; auto is bfloat16 where it is fast.",
        choices=PRECISIONS,
    )
    channels_last: bool = parameter(True, "Whether channels are last in memory.")
    compile: bool = parameter(False, "Whether torch compiles the network first.")
    validation_episodes: int = parameter(
        300,
        "5-way 5-shot episodes of the validation classes after each epoch, smaller ones where "
        "there are too few pictures. They choose the best epoch; without such classes it is the "
        "last one.",
        minimum=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rates:
            raise OptionError("rates is empty; give a learning rate from epoch 0 on.")
        for name in ("rates", "sizes"):
            epochs = [epoch for epoch, _ in getattr(self, name)]
            if epochs and (epochs[0] != 0 or epochs != sorted(epochs)):
                raise OptionError(
                    f"{name} is {getattr(self, name)}; its epochs must begin with 0 and ascend."
                )


def read_config(
    path: str | os.PathLike[str] | None = None, settings: Iterable[str] = ()
) -> TrainingConfig:
    """Read a recipe: the defaults, a TOML file over them, settings such as "epochs=12" last."""
    config = TrainingConfig()
    if path is not None:
        settings_of_file = read_toml(path)
        with naming(printable(path)):
            config = config.updated(settings_of_file)
    return config.updated(TrainingConfig.parse(settings))
