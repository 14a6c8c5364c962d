"""Functions and commands run in two real processes that train together."""

import os
import socket
import subprocess
import sys

from torch import multiprocessing

from protorect.training.distributed import joined


def in_two_processes(function, *arguments):
    """Call function(processes, *arguments) in two processes at once."""
    multiprocessing.spawn(_one_of_two, (free_port(), function, arguments), nprocs=2)


def start_two(*commands):
    """Start `protorect` with the arguments of each, as torchrun would."""
    port = free_port()
    return [
        subprocess.Popen(
            [sys.executable, "-m", "protorect", *map(str, command)],
            env={**os.environ, **environment(rank, port), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, command in enumerate(commands)
    ]


def environment(rank, port):
    """What torchrun tells a process about itself."""
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
    return {name: str(value) for name, value in told.items()} | {"MASTER_ADDR": "127.0.0.1"}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _one_of_two(rank, port, function, arguments):
    os.environ.update(environment(rank, port))
    with joined("cpu") as (processes, _):
        function(processes, *arguments)
