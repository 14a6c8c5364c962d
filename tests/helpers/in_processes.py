"""Functions and commands run in real processes, forked from one that has imported torch."""

import multiprocessing
import os
import signal
import socket
import sys

import torch
from torch.multiprocessing import start_processes

from protorect.cli import main
from protorect.training.distributed import process_group

# Importing torch takes seconds per process. The fork server does it once and runs nothing else.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["protorect.cli.train", "torch._dynamo"])


class CommandProcess:
    """A `protorect` command in a process of its own, its output in files in `folder`."""

    def __init__(self, folder, arguments, *, threads=1, variables=None):
        folder.mkdir(parents=True)
        self._outputs = [folder / "stdout", folder / "stderr"]
        environment = {**os.environ, **(variables or {})}
        task = (self._outputs, list(map(str, arguments)), threads, environment)
        self._process = _FORKS.Process(target=_run_command, args=task)
        self._process.start()

    @property
    def exit_code(self):
        """None while it runs; the negative signal number if it was killed."""
        return self._process.exitcode

    def kill(self):
        os.kill(self._process.pid, signal.SIGKILL)

    def wait(self):
        """Wait for its end; what it printed on standard output and standard error."""
        self._process.join(300)
        assert self.exit_code is not None, "it does not end"
        return tuple(path.read_text() for path in self._outputs)


def start_two(folder, *commands):
    """Start `protorect` with the arguments of each command, as torchrun would."""
    port = free_port()
    return [
        CommandProcess(folder / f"rank {rank}", command, variables=torchrun_variables(rank, port))
        for rank, command in enumerate(commands)
    ]


def in_two_processes(function, *arguments):
    """Call function(processes, *arguments) in two processes at once."""
    start_processes(
        _run_rank, (free_port(), function, arguments), nprocs=2, start_method="forkserver"
    )


def torchrun_variables(rank, port):
    """The environment variables that torchrun sets for each process."""
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
    return {name: str(value) for name, value in variables.items()} | {"MASTER_ADDR": "127.0.0.1"}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _run_command(outputs, arguments, threads, environment):
    for descriptor, path in enumerate(outputs, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    os.environ.update(environment)
    torch.set_num_threads(threads)
    sys.exit(main(arguments))


def _run_rank(rank, port, function, arguments):
    os.environ.update(torchrun_variables(rank, port))
    with process_group("cpu") as (processes, _):
        function(processes, *arguments)
