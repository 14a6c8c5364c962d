"""Whatever ends an extraction, the next one goes on to the same features."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from helpers.packed import pack_noise, save_weights
from protorect import DataError, load_features
from protorect.embedding import extract
from protorect.embedding.unfinished import unfinished

COMMAND = Path(sys.executable).parent / "protorect"


class StoppedError(Exception):
    pass


def stop_after(pictures):
    def progress(done, total):
        if done >= pictures:
            raise StoppedError

    return progress


def interrupted(weights, noise, out, pictures=40):
    with pytest.raises(StoppedError):
        extract(weights, noise, out, progress=stop_after(pictures))


@pytest.fixture(scope="module")
def whole(weights, noise, tmp_path_factory):
    """Features that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "f.npz"
    assert extract(weights, noise, out) == (True, 0, False, ())
    return load_features(out)


@pytest.mark.parametrize("name", ["f.npz", "store"])
@pytest.mark.usefixtures("small_blocks")
def test_what_is_done_is_not_done_again(weights, noise, whole, tmp_path, name):
    out = tmp_path / name
    interrupted(weights, noise, out)
    assert os.listdir(tmp_path) == [f"{name}.partial"]
    seen = []
    done = extract(weights, noise, out, progress=lambda done, total: seen.append(done))
    assert done.resumed == 40
    assert seen == [48, 56, 64, 72, 80, 88, 96, 100]
    assert os.listdir(tmp_path) == [name]
    features, labels = load_features(out)
    np.testing.assert_array_equal(features, whole[0])
    np.testing.assert_array_equal(labels, whole[1])
    assert not extract(weights, noise, out).written


@pytest.mark.usefixtures("small_blocks")
def test_a_block_that_was_not_written_whole_is_made_again(weights, noise, whole, tmp_path):
    out = tmp_path / "store"
    interrupted(weights, noise, out)
    path = tmp_path / "store.partial" / "store" / "features.npy"
    features = np.lib.format.open_memmap(path, "r+")
    features[17] = 0  # as if the power had gone before the disk had it
    features.flush()
    assert extract(weights, noise, out).resumed == 32
    np.testing.assert_array_equal(load_features(out)[0], whole[0])


@pytest.mark.usefixtures("small_blocks")
def test_an_unfinished_one_of_something_else_is_refused(weights, noise, tmp_path):
    out = tmp_path / "f.npz"
    interrupted(weights, noise, out)
    other = save_weights(tmp_path / "other.safetensors", seed=1)
    with pytest.raises(DataError, match="f.npz.partial .* made otherwise: weights differs. Remove"):
        extract(other, noise, out)
    others = pack_noise(tmp_path / "others", 100, seed=1)
    with pytest.raises(DataError, match="made otherwise: pictures differs"):
        extract(weights, others, out)
    with pytest.raises(DataError, match="made otherwise: precision differs"):
        extract(weights, noise, out, precision="bfloat16")
    assert extract(weights, noise, out).resumed == 40  # nothing of it was lost


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_another_size_are_no_obstacle(weights, noise, whole, tmp_path, monkeypatch):
    interrupted(weights, noise, tmp_path / "f.npz")
    monkeypatch.setattr("protorect.backbones.inference._LARGEST_BATCH", 16)
    assert extract(weights, noise, tmp_path / "f.npz").resumed == 0
    np.testing.assert_array_equal(load_features(tmp_path / "f.npz")[0], whole[0])


def test_killed_by_the_system_it_goes_on(weights, tmp_path):
    """kill -9 in the middle; the next command has the features of one left alone."""
    noise = pack_noise(tmp_path / "packed", 256 * 16)
    out, marks = tmp_path / "store", tmp_path / "store.partial" / "blocks.npy"
    running = subprocess.Popen(
        [COMMAND, "extract", weights, noise, "--out", out],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not marks.exists() or np.count_nonzero(np.load(marks)) < 2:
        assert running.poll() is None, running.communicate()
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert not out.exists()
    assert extract(weights, noise, out).resumed >= 512
    extract(weights, noise, tmp_path / "whole.npz")
    same = load_features(tmp_path / "whole.npz")[0]
    np.testing.assert_array_equal(load_features(out)[0], same)


def test_a_folder_of_pictures_is_packed_again_and_its_features_are_kept(weights, tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / "drawings" / name).mkdir(parents=True)
        for number in range(6):
            pixels = rng.integers(0, 256, (30, 30), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "drawings" / name / f"{number}.png")

    def stop_in_the_second_pass(done, total):
        seen.append(done)
        if seen.count(total) == 2:
            raise StoppedError

    seen, out = [], tmp_path / "f.npz"
    with pytest.raises(StoppedError):
        extract(weights, tmp_path / "drawings", out, progress=stop_in_the_second_pass)
    left = sorted(os.listdir(tmp_path / "f.npz.partial"))
    assert left == ["blocks.npy", "store"]
    assert extract(weights, tmp_path / "drawings", out).resumed == 12
    assert not extract(weights, tmp_path / "drawings", out).written
    with pytest.raises(DataError, match="is inside .* where it would be taken for a class"):
        extract(weights, tmp_path / "drawings", tmp_path / "drawings" / "f.npz")


def test_a_second_command_on_the_same_output_is_refused(weights, noise, tmp_path):
    out = tmp_path / "f.npz"
    with unfinished(out), pytest.raises(DataError, match="is being written by another command"):
        extract(weights, noise, out)
    assert extract(weights, noise, out).written


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["f.npz", "store"])
def test_two_processes_give_the_same_features(weights, noise, whole, tmp_path, name):
    extract(weights, noise, tmp_path / name, workers=2)
    np.testing.assert_array_equal(load_features(tmp_path / name)[0], whole[0])
    assert os.listdir(tmp_path) == [name]


@pytest.mark.usefixtures("small_blocks")
def test_a_disk_that_fills_up_leaves_nothing_that_looks_finished(
    weights, noise, whole, tmp_path, monkeypatch
):
    written, room, pwrite = [], 8 * 64 * 4 * 3, os.pwrite

    def full(file, data, at):
        if sum(written) >= room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(len(data))
        return pwrite(file, data, at)

    for name in ("f.npz", "store"):
        written.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            with pytest.raises(DataError, match=f"cannot write .*{name}: No space left on device"):
                extract(weights, noise, tmp_path / name)
        assert not (tmp_path / name).exists()
        assert extract(weights, noise, tmp_path / name).resumed == 16
        np.testing.assert_array_equal(load_features(tmp_path / name)[0], whole[0])


def test_a_disk_too_small_is_known_before_the_work(weights, noise, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    calls = []
    with pytest.raises(DataError, match="No space left on device"):
        extract(weights, noise, tmp_path / "f.npz", progress=lambda *done: calls.append(done))
    assert calls == []
    assert os.listdir(tmp_path) == []


def test_a_folder_that_only_has_the_name_is_left_alone(weights, noise, tmp_path):
    (tmp_path / "f.npz.partial").mkdir()
    (tmp_path / "f.npz.partial" / "thesis.tex").write_text("mine")
    with pytest.raises(DataError, match=r"holds something else \(thesis.tex\). Move it away"):
        extract(weights, noise, tmp_path / "f.npz")
    assert os.listdir(tmp_path / "f.npz.partial") == ["thesis.tex"]


def test_an_unfinished_one_that_was_damaged_is_named(weights, noise, tmp_path):
    interrupted(weights, noise, tmp_path / "store")
    (tmp_path / "store.partial" / "store" / "features.npy").write_bytes(b"no array")
    with pytest.raises(DataError, match="features.npy is damaged.* Remove it and extract again"):
        extract(weights, noise, tmp_path / "store")
