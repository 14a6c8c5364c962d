"""Transductive fine-tuning of the whole network.

Guneet S. Dhillon, Pratik Chaudhari, Avinash Ravichandran, Stefano Soatto: "A Baseline for Few-Shot
Image Classification", ICLR 2020.

The classifier of `tft-head` starts from the support, and then the network and the classifier
together minimise the mean cross-entropy of the support plus the mean Shannon entropy of the
queries. Every task starts from the trained network. So it needs that network and the pictures, not
their features: `protorect evaluate FEATURES --method tft --network RUN --pictures PACKED`.

The code of the authors differs: it takes one step for each of the two terms, augments the pictures,
and lets batch norm's statistics follow the task. Here they stay those of the training. Then a
gradient is the sum of those of its parts, and the memory is bounded however many pictures a task
has. Eight validation episodes of Omniglot, all but solved, do not tell the two ways apart.

Assumes that the support alone separates the classes well, and that a task is worth some seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from protorect._utils.parameters import check_choice
from protorect.backbones.cosine_classifier import unit_length
from protorect.core.functional import basic_prototypes
from protorect.methods.tft_head import TftHeadOptions

Statistics = Literal["training", "task"]


@dataclass(frozen=True)
class TftOptions(TftHeadOptions):
    """The choices of transductive fine-tuning: those for the head alone, and one more.

    Parameters
    ----------
    statistics
        Of batch norm: those of the "training" stay, or the means and variances of the "task" take
        their place little by little, as in the code of the authors; a small batch at a time where
        a task has many pictures.
    """

    statistics: Statistics = "training"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("statistics", self.statistics, ("training", "task"))


def tft(
    network: nn.Module,
    support: Tensor,
    labels: Tensor,
    query: Tensor,
    ways: int,
    options: TftOptions,
    at_once: int,
) -> Tensor:
    """Logits of the queries of one task (n_query, ways); the network is left as it is.

    Parameters
    ----------
    network
        (n, channels, height, width) -> (n, dim)
    support, query
        Pictures as the network wants them, (n_support, channels, height, width) and (n_query, ...).
    labels
        (n_support,), whole numbers 0 .. ways - 1, each present.
    at_once
        How many pictures go through the network together, which bounds the memory: the gradients
        of a step are summed up over the parts.
    """
    tuned = deepcopy(network).eval()
    known, unknown = _parts(support, at_once), _parts(query, at_once)
    head = _head(_in_parts(tuned, known), labels, ways)
    weights = [*tuned.parameters(), *head.parameters()]
    adam = torch.optim.Adam(weights, lr=options.learning_rate)

    def logits(pictures: Tensor) -> Tensor:
        cosines: Tensor = head(unit_length(tuned(pictures)))
        return options.scale * cosines

    for _ in range(options.steps):
        _train_batch_norms(tuned, options.statistics == "task")
        adam.zero_grad()
        for part, classes in zip(known, _parts(labels, at_once), strict=True):
            loss = cross_entropy(logits(part), classes, reduction="sum") / len(support)
            torch.autograd.backward(loss)
        for part in unknown:
            loss = options.entropy * _entropies(logits(part)).sum() / len(query)
            torch.autograd.backward(loss)
        adam.step()
    _train_batch_norms(tuned, False)
    return _in_parts(logits, unknown)


def _parts(rows: Tensor, at_once: int) -> list[Tensor]:
    return [rows[start : start + at_once] for start in range(0, len(rows), at_once)]


def _head(features: Tensor, labels: Tensor, ways: int) -> nn.Linear:
    """A linear layer whose rows are the classes' means at length one, its biases 0."""
    head = nn.Linear(features.shape[1], ways, dtype=features.dtype, device=features.device)
    prototypes = basic_prototypes(features, labels, ways)
    head.load_state_dict({"weight": unit_length(prototypes), "bias": features.new_zeros(ways)})
    return head


def _entropies(logits: Tensor) -> Tensor:
    """Shannon entropy of each row's softmax, (n, ways) -> (n,)."""
    log_p = logits.log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)


@torch.no_grad()
def _in_parts(function: Callable[[Tensor], Tensor], parts: list[Tensor]) -> Tensor:
    return torch.cat([function(part) for part in parts])


def _train_batch_norms(network: nn.Module, training: bool) -> None:
    """Whether batch norms use and learn the statistics of what they see; nothing else changes."""
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.train(training)
