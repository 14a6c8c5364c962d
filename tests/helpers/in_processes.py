"""Functions and commands run in two real processes that train together."""

import os
import socket
import subprocess
import sys

from torch import multiprocessing

from protorect.training.distributed import process_group


def in_two_processes(function, *arguments):
    """Call function(processes, *arguments) in two processes at once."""
    multiprocessing.spawn(_run_rank, (free_port(), function, arguments), nprocs=2)


def start_two(*commands):
    """Start `protorect` with the arguments of each command, as torchrun would."""
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
    """The environment variables that torchrun sets for each process."""
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
    return {name: str(value) for name, value in variables.items()} | {"MASTER_ADDR": "127.0.0.1"}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _run_rank(rank, port, function, arguments):
    os.environ.update(environment(rank, port))
    with process_group("cpu") as (processes, _):
        function(processes, *arguments)
