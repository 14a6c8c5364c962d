"""Several processes, on one machine or many, that train together: a part of each batch in each.

They are started by `torchrun`, share what they found through torch's process group (gloo between
processors, nccl between accelerators) and reach the weights that one process would, but for the
rounding. A process that is alone is the same object with nothing to share.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn

from protorect._utils.tensors import usable_device
from protorect.errors import DataError, OptionError

# The others wait while the first process validates and writes, however long that takes.
_PATIENCE = timedelta(days=7)
_START = "Start several processes with: torchrun --nproc-per-node 2 -m protorect train ..."


@dataclass(frozen=True)
class Processes:
    """Who takes part in a training; as it stands, one process alone."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this process is the one that validates, writes and tells."""
        return self.rank == 0

    def part(self, n: int) -> slice:
        """Which of the n pictures of a batch are for this process."""
        return slice(n * self.rank // self.count, n * (self.rank + 1) // self.count)

    def shared(self, model: nn.Module) -> nn.Module:
        """The model as it is called in training; gradients are summed over the processes."""
        return model

    def summed(self, *values: float) -> tuple[float, ...]:
        """Each value, summed over the processes."""
        return values


class Several(Processes):
    """One of several processes."""

    def shared(self, model: nn.Module) -> nn.Module:
        """DistributedDataParallel around the model, whose layers now look at whole batches."""
        from torch.nn.parallel import DistributedDataParallel

        from protorect.training.whole_batch import look_at_whole_batches

        look_at_whole_batches(model)
        parallel = DistributedDataParallel(model)
        # Summed, not averaged: the loss of each process is a share of the whole one.
        parallel.register_comm_hook(None, lambda _, bucket: _sum(bucket.buffer()))
        return parallel

    def summed(self, *values: float) -> tuple[float, ...]:
        """Each value, summed over the processes."""
        sums = torch.tensor(values, dtype=torch.float64)
        torch.distributed.all_reduce(sums)
        return tuple(sums.tolist())


@contextmanager
def joined(device: str) -> Iterator[tuple[Processes, torch.device]]:
    """Give the processes of this training, and the device that this one computes on.

    An error in one of them ends them all; the first that fails says why, the others end in silence.
    """
    chosen = usable_device(device)
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield Processes(), chosen
        return
    import torch.distributed as dist

    chosen = _own_device(chosen)
    store, rank, count = _meeting_point()
    backend = "cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo"
    try:
        dist.init_process_group(
            backend, store=store, rank=rank, world_size=count, timeout=_PATIENCE
        )
        yield Several(rank, count), chosen
        dist.barrier()
    except BaseException as error:
        if not _is_first_to_fail(store):
            raise SystemExit(1) from None
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            raise DataError(
                f"process {rank + 1} of {count} lost the others, of which one has ended. "
                "Find out why, then go on with --resume."
            ) from error
        raise
    dist.destroy_process_group()


def _own_device(device: torch.device) -> torch.device:
    """The accelerator of this process among those of its machine."""
    if device.type != "cuda":
        return device
    if device.index is not None:
        raise OptionError(f"{device} is one device; several processes take one each: use cuda.")
    own = int(os.environ.get("LOCAL_RANK", "0"))
    if own >= torch.cuda.device_count():
        raise OptionError(
            f"this machine has {torch.cuda.device_count()} CUDA devices, and process {own + 1} "
            "wants one of its own. Start fewer processes."
        )
    torch.cuda.set_device(own)
    return torch.device("cuda", own)


def _meeting_point() -> tuple[Any, int, int]:
    """The store in which the processes meet, which one this is, and how many there are."""
    from torch.distributed.rendezvous import rendezvous

    try:
        store, rank, count = next(rendezvous("env://"))
    except (ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise OptionError(
            f"WORLD_SIZE is set, but the other processes cannot be met: {reason}. {_START}"
        ) from error
    return store, rank, count


def _is_first_to_fail(store: Any) -> bool:
    try:
        return bool(store.add("failed", 1) == 1)
    except RuntimeError:  # the one that kept the store has failed already
        return False


def _sum(gradients: Tensor) -> torch.futures.Future[Tensor]:
    work = torch.distributed.all_reduce(gradients, async_op=True)
    future: torch.futures.Future[Tensor] = work.get_future().then(lambda done: done.value()[0])
    return future
