"""Transductive fine-tuning of the whole network.

Guneet S. Dhillon, Pratik Chaudhari, Avinash Ravichandran, Stefano Soatto: "A Baseline for Few-Shot
Image Classification", ICLR 2020.

The classifier of `tft-head` is initialized from the support, and then the network and the
classifier together minimize the mean cross-entropy of the support plus the mean Shannon entropy of
the queries. Every task starts from the trained network. So it needs that network and the pictures,
not their features: `protorect evaluate FEATURES --method tft --network RUN --pictures PACKED`.

The authors' code differs: it takes one step for each of the two terms, augments the pictures, and
updates the statistics of batch norm on the task. Here these statistics are fixed. A gradient is
then the sum of those of its parts, which bounds the memory for any number of pictures. Eight
validation episodes of Omniglot, nearly all solved, show no difference between the two.

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
from protorect.core.functional import basic_prototypes
from protorect.methods.method import register
from protorect.methods.tft_head import TftHeadOptions


class TftOptions(TftHeadOptions):
    """Options of transductive fine-tuning: those of `tft-head` and one more."""

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
    at_once: int,
) -> Tensor:
    """Logits of the queries of one task (n_query, ways); see `PictureMethod`.

    The gradients of a step are summed over parts of `at_once` pictures.
    """
    tuned = deepcopy(network).eval()
    support_parts, query_parts = torch.split(support, at_once), torch.split(query, at_once)
    prototypes = basic_prototypes(_in_parts(tuned, support_parts), labels, ways)
    weights, biases = unit_length(prototypes), prototypes.new_zeros(ways)
    trained = [*tuned.parameters(), weights.requires_grad_(), biases.requires_grad_()]
    adam = torch.optim.Adam(trained, lr=options.learning_rate)

    def logits(pictures: Tensor) -> Tensor:
        return options.scale * linear(unit_length(tuned(pictures)), weights, biases)

    for _ in range(options.iterations):
        _train_batch_norms(tuned, options.statistics == "task")
        adam.zero_grad()
        for part, part_labels in zip(support_parts, torch.split(labels, at_once), strict=True):
            loss = cross_entropy(logits(part), part_labels, reduction="sum") / len(support)
            torch.autograd.backward(loss)
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
