"""Transductive fine-tuning of the whole network.

Guneet S. Dhillon, Pratik Chaudhari, Avinash Ravichandran, Stefano Soatto: "A Baseline for Few-Shot
Image Classification", ICLR 2020.

A new layer on unit-length inputs is initialized from the support, its rows the class means at unit
length and its biases 0, and then the network and the layer together minimize the mean cross-entropy
of the support plus the mean Shannon entropy of the queries. Every task starts from the trained
network. So it needs that network and the pictures, not their features: `protorect evaluate FEATURES
--method tft --network RUN --pictures PACKED`.

The authors put the layer on the rectified logits of the base classifier, which stays in the
network, and average them before normalization; and in each of 25 epochs they take one step for the
support and then one for the queries. That is `tft:layer=logits,updates=separate`. It needs the base
classifier, which the files of a run have and weights of earlier versions have not. By default the
layer is on the features, as in `tft-head`, and a step minimizes the sum of both terms.

The authors' code also augments the pictures, which is not done here, and updates the statistics of
batch norm on the task (`statistics=task`). With fixed statistics a gradient is the sum of those of
its parts, which bounds the memory for any number of pictures. Networks compute in bfloat16 where
the processor is fast at it, the weights and the new layer are in float32.

Assumes that the support alone separates the classes well, and that some seconds per task are
acceptable.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from protorect._utils.parameters import parameter
from protorect.backbones.cosine_classifier import unit_length
from protorect.core.functional import class_means
from protorect.core.unit_rows import RawRows, UnitRows
from protorect.methods.method import register
from protorect.methods.tft_head import TftHeadOptions


class TftOptions(TftHeadOptions):
    """Options of transductive fine-tuning: those of `tft-head` and three more."""

    layer: Literal["features", "logits"] = parameter(
        "features",
        'What the new layer is on: the "features", or the rectified "logits" of the base '
        "classifier, as the authors have it.",
    )
    updates: Literal["together", "separate"] = parameter(
        "together",
        'A step for the support and the queries "together", or "separate" ones in turn, as the '
        "authors take them.",
    )

    statistics: Literal["training", "task"] = parameter(
        "training",
        'Of batch norm: "training" keeps those of the training, "task" updates them with every '
        "batch of the task, as in the authors' code.",
    )


@register(
    "tft", TftOptions(), "transductive", "the network fine-tuned; needs pictures", on_pictures=True
)
def tft(
    network: nn.Module,
    support: Tensor,
    labels: Tensor,
    query: Tensor,
    ways: int,
    options: TftOptions,
    batch_size: int,
) -> Tensor:
    """Logits of the queries of one task (n_query, ways); see `PictureMethod`.

    The network gives features, or rectified logits of base classes if the layer is on them. The
    gradients of a step are summed over parts of `batch_size` pictures.
    """
    tuned = deepcopy(network).eval()
    support_parts, query_parts = torch.split(support, batch_size), torch.split(query, batch_size)
    start = _in_parts(tuned, support_parts)
    rows = UnitRows.of(start) if options.layer == "features" else RawRows.of(start)
    prototypes = class_means(rows, labels, ways)
    weights, biases = unit_length(prototypes), prototypes.new_zeros(ways)
    trained = [*tuned.parameters(), weights.requires_grad_(), biases.requires_grad_()]
    adam = torch.optim.Adam(trained, lr=options.learning_rate)

    def logits(pictures: Tensor) -> Tensor:
        return options.scale * linear(unit_length(tuned(pictures)), weights, biases)

    for _ in range(options.iterations):
        _train_batch_norms(tuned, options.statistics == "task")
        adam.zero_grad()
        for part, part_labels in zip(support_parts, torch.split(labels, batch_size), strict=True):
            loss = cross_entropy(logits(part), part_labels, reduction="sum") / len(support)
            torch.autograd.backward(loss)
        if options.updates == "separate":
            adam.step()
            adam.zero_grad()
        for part in query_parts:
            loss = options.entropy * _entropies(logits(part)).sum() / len(query)
            torch.autograd.backward(loss)
        adam.step()
    _train_batch_norms(tuned, False)
    return _in_parts(logits, query_parts)


def _entropies(logits: Tensor) -> Tensor:
    """Shannon entropy of each row's softmax, (n, ways) -> (n,)."""
    log_p = logits.log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)


@torch.no_grad()
def _in_parts(function: Callable[[Tensor], Tensor], parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([function(part) for part in parts])


def _train_batch_norms(network: nn.Module, training: bool) -> None:
    """Set the batch norms to training or evaluation mode; no other module changes."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.train(training)
