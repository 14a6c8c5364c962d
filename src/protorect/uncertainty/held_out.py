"""Held-out examples: each is classified once without its label, as one of the unlabeled samples.

A class keeps at least one example, so the only example of a class is never held out. A method that
has one example less is slightly worse, so the accuracy estimated from them is slightly
pessimistic.
"""

from collections import Counter, defaultdict
from typing import NamedTuple

import torch
from torch import Tensor

from protorect.core.unit_rows import evenly_spaced
from protorect.methods import Method

TASKS = 8  # maximum number of tasks, each with some examples held out
MAX_HELD_OUT = 400  # approximate maximum number of held-out examples
_MAX_UNLABELED = 600  # unlabeled samples in a task
_UNLABELED_PER_CLASS = 15  # that maximum per class, if it is more


class HeldOut(NamedTuple):
    """The n held-out examples, classified."""

    scores: Tensor  # (n, ways) by the method
    labels: Tensor  # (n,)


def hold_out(method: Method, support: Tensor, labels: Tensor, unlabeled: Tensor) -> HeldOut:
    """Classify examples of the support set (n_support, dim) without their labels.

    They are classified together with the unlabeled samples (n, dim). Of very many unlabeled samples
    or examples only some are used.
    """
    ways = int(labels.max()) + 1
    maximum = max(_MAX_UNLABELED, _UNLABELED_PER_CLASS * ways)
    unlabeled = unlabeled[evenly_spaced(len(unlabeled), maximum)]
    parts = [HeldOut(support.new_empty(0, ways), labels[:0])]
    groups = _groups(labels)
    max_groups = max(1, round(len(groups) * MAX_HELD_OUT / max(1, sum(map(len, groups)))))
    for group in groups[evenly_spaced(len(groups), max_groups)]:
        is_held_out = torch.zeros(len(labels), dtype=torch.bool)
        is_held_out[group] = True
        task = support[~is_held_out][None], labels[~is_held_out]
        query = torch.cat([support[is_held_out].to(unlabeled.dtype), unlabeled])[None]
        if len(unlabeled):
            scores = method(*task, query)[0]
        else:  # later samples are scored by the rule of the examples alone
            scores = method.fit(*task).rule.scores(query)[0]
        parts.append(HeldOut(scores[: len(group)], labels[is_held_out]))
    return HeldOut(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _groups(labels: Tensor) -> list[list[int]]:
    """Examples that are held out together: one of every class with several, where shots are equal.

    So all classes have one example less, and none has an advantage. There are at most TASKS groups;
    a class with more examples has several in each.
    """
    groups: defaultdict[int, list[int]] = defaultdict(list)
    seen, shots = Counter[int](), labels.bincount().tolist()
    for i, label in enumerate(labels.tolist()):
        if shots[label] > 1:
            groups[seen[label] % TASKS].append(i)
            seen[label] += 1
    return list(groups.values())
