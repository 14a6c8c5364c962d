"""`compile=true`: the same training through torch's compiler."""

import shutil
import sysconfig
from pathlib import Path

import pytest
import torch

from protorect._utils.checkpoint import load_tensors
from protorect.training import TrainingConfig, train
from protorect.training.config import updated

TINY = TrainingConfig(
    epochs=1, steps_per_epoch=2, batch_size=16, validation_episodes=5, precision="float32"
)


def missing():
    """What torch's compiler would need and cannot find."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        return "needs a C++ compiler"
    headers = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return None if headers.exists() else "needs the headers of Python"


@pytest.mark.skipif(missing() is not None, reason=f"torch.compile {missing()}")
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method.:DeprecationWarning")  # torch's own
def test_a_compiled_training_is_the_same_training(packed, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no processes just for this
    plain = train(packed, tmp_path / "plain", TINY)
    compiled = train(packed, tmp_path / "compiled", updated(TINY, {"compile": True}))
    loss = plain.epochs_logged()[0]["loss"]
    assert compiled.epochs_logged()[0]["loss"] == pytest.approx(loss, rel=1e-3)
    for file in ("last", "best"):
        left, right = (load_tensors(getattr(run, file))[0] for run in (plain, compiled))
        assert left.keys() == right.keys()
        for name, tensor in left.items():
            torch.testing.assert_close(right[name], tensor, rtol=0.05, atol=0.02)
