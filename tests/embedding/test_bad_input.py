"""Wrong input of `protorect extract`: one sentence, exit code 2, no files left."""

import os

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from helpers.packed import save_weights
from helpers.privileges import permissions_count
from protorect._utils.checkpoint import save_tensors
from protorect.cli import main


@pytest.fixture
def refused(tmp_path, capsys):
    """Run the command, and return its error message."""

    def run(source, pictures, out, *options):
        before = sorted(os.listdir(tmp_path))
        assert main(["extract", str(source), str(pictures), "--out", str(out), *options]) == 2
        assert sorted(os.listdir(tmp_path)) == before
        message = capsys.readouterr().err.strip()
        assert len(message.splitlines()) == 1
        return message

    return run


def test_files_without_usable_weights(weights, noise, tmp_path, refused):
    out = tmp_path / "f.npz"
    bad = tmp_path / "w.safetensors"
    assert "Did you mean 'omniglot-conv64'?" in refused("omniglot", noise, out)
    assert "there is no file" in refused(tmp_path / "no.safetensors", noise, out)
    bad.write_bytes(weights.read_bytes()[:-100])
    assert "damaged or incomplete" in refused(bad, noise, out)
    bad.write_bytes(b"PK no weights")
    assert "is not a safetensors file" in refused(bad, noise, out)
    save_file({"x": torch.zeros(1)}, bad)
    assert "without a configuration of protorect" in refused(bad, noise, out)
    save_tensors(bad, {}, {"kind": "estimator"})
    assert "holds 'estimator', not 'backbone'" in refused(bad, noise, out)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backbone": "conv65"}, "cannot be used: unknown backbone 'conv65'. Did you mean"),
        ({"backbone": ["conv64"]}, "does not say which backbone it is"),
        ({"channels": 2}, "cannot be used: channels is 2"),
        ({"size": "28"}, "cannot be used: size is '28'"),
        ({"size": 10**9}, "cannot be used: size is 1000000000; pictures have at most 1024"),
        ({"mean": [0.5, 0.5]}, "mean is [0.5, 0.5]; it must be 1 numbers"),
        ({"mean": "x"}, "does not say which backbone it is"),
        ({"std": [0.0]}, "std is [0.0]; it must be 1 numbers, a std above 0"),
        ({"std": None}, "does not say which backbone it is"),
    ],
)
def test_weights_with_a_wrong_card(changes, message, noise, tmp_path, refused):
    bad = save_weights(tmp_path / "w.safetensors", **changes)
    assert message in refused(bad, noise, tmp_path / "f.npz")


def test_folders_without_pictures(weights, tmp_path, refused):
    out = tmp_path / "f.npz"
    assert "there is no file or folder" in refused(weights, tmp_path / "nowhere", out)
    (tmp_path / "empty").mkdir()
    assert "no class was found" in refused(weights, tmp_path / "empty", out)
    (tmp_path / "broken" / "a").mkdir(parents=True)
    (tmp_path / "broken" / "b").mkdir()
    (tmp_path / "broken" / "a" / "1.png").write_text("text")
    (tmp_path / "broken" / "b" / "1.png").write_text("text")
    assert "has no readable picture" in refused(weights, tmp_path / "broken", out)
    inside = tmp_path / "broken" / "f.npz"
    assert "where it would be taken for a class" in refused(weights, tmp_path / "broken", inside)
    (tmp_path / "one" / "a").mkdir(parents=True)
    (tmp_path / "one" / "a" / "1.png").write_text("text")
    assert "has one class, a" in refused(weights, tmp_path / "one", out)


def test_outputs_that_cannot_be_written(weights, noise, tmp_path, refused):
    (tmp_path / "file").write_text("mine")
    assert "cannot write" in refused(weights, noise, tmp_path / "file" / "f.npz")
    assert "is a file. Remove it or" in refused(weights, noise, tmp_path / "file")
    (tmp_path / "d.npz").mkdir()
    assert "d.npz is a folder. Remove it or" in refused(weights, noise, tmp_path / "d.npz")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert "is not a feature store" in refused(weights, noise, tmp_path / "full")
    np.savez(tmp_path / "other.npz", features=np.zeros(3))
    assert "no record of its origin" in refused(weights, noise, tmp_path / "other.npz")
    (tmp_path / "f.npz.partial").write_text("mine")
    assert "cannot write" in refused(weights, noise, tmp_path / "f.npz")


def test_a_write_protected_folder(weights, noise, tmp_path, refused):
    (tmp_path / "protected").mkdir(mode=0o500)
    with permissions_count():
        assert "Permission denied" in refused(weights, noise, tmp_path / "protected" / "f.npz")


def test_wrong_options(weights, noise, tmp_path, refused):
    out = tmp_path / "f.npz"
    assert "workers is 0" in refused(weights, noise, out, "--workers", "0")
    assert "device 'abacus' cannot be used" in refused(weights, noise, out, "--device", "abacus")
    assert "device 'meta' cannot be used" in refused(weights, noise, out, "--device", "meta")
    assert "unknown split" in refused(weights, noise, out, "--split", "tset")
