"""Training in several processes, on one machine or many, started by `torchrun`.

Each process computes its part of every batch; DistributedDataParallel averages the gradients.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from protorect._utils.tensors import usable_device
from protorect.errors import DataError, OptionError

# The other processes wait while the first one validates and writes, however long that takes.
_TIMEOUT = timedelta(days=7)


@dataclass(frozen=True)
class Processes:
    """The rank of this process and the number of processes that train together."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that validates, writes and reports."""
        return self.rank == 0

    def part(self, n: int) -> slice:
        """The part of a batch of n images that this process computes."""
        return slice(n * self.rank // self.count, n * (self.rank + 1) // self.count)

    def wrap(self, model: nn.Module) -> nn.Module:
        """The module to call in training, which averages gradients over the processes."""
        if self.count == 1:
            return model
        if next(model.parameters()).is_cuda:  # SyncBatchNorm exists for CUDA only
            nn.SyncBatchNorm.convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
        return DistributedDataParallel(model)

    def sum(self, *values: float) -> tuple[float, ...]:
        """Sum each value over the processes."""
        if self.count == 1:
            return values
        sums = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(sums)
        return tuple(sums.tolist())


@contextmanager
def process_group(device: str) -> Iterator[tuple[Processes, torch.device]]:
    """Join the processes that torchrun started; yield them and the device of this process.

    An error in one process ends all: the first to fail reports its error, the others exit with 1.
    """
    usable_device(device)
    own_device = torch.device(device)  # as written: "cuda" leaves the choice of the index open
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield Processes(), own_device
        return
    own_device = _device_of_process(own_device)
    store, rank, count = _rendezvous()
    backend = "cpu:gloo,cuda:nccl" if own_device.type == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=_TIMEOUT)
        yield Processes(rank, count), own_device
        dist.barrier()
    except BaseException as error:
        if not _is_first_to_fail(store):
            raise SystemExit(1) from None
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            raise DataError(
                f"process {rank + 1} of {count} lost the connection to another one, which has "
                "ended. Find out why it ended, then continue with --resume."
            ) from error
        raise
    dist.destroy_process_group()


def _device_of_process(device: torch.device) -> torch.device:
    """One CUDA device per process of this machine; any other device is shared."""
    if device.type != "cuda":
        return device
    if device.index is not None:
        raise OptionError(f"{device} is one device; several processes take one each: use cuda.")
    local_rank, devices = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if local_rank >= devices:
        raise OptionError(
            f"this machine has {devices} CUDA devices, and process {local_rank + 1} needs its own. "
            "Start fewer processes."
        )
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def _rendezvous() -> tuple[Any, int, int]:
    """The store that the processes share, the rank of this one, and their number."""
    try:
        store, rank, count = next(rendezvous("env://"))
    except (ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise OptionError(
            f"WORLD_SIZE is set, but the other processes cannot be reached: {reason}. Start "
            "several processes with: torchrun --nproc-per-node 2 -m protorect train ..."
        ) from error
    return store, rank, count


def _is_first_to_fail(store: Any) -> bool:
    try:
        return bool(store.add("failed", 1) == 1)
    except RuntimeError:  # the process that held the store has failed already
        return False
