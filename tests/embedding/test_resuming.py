"""An interrupted extraction is resumed by the same call and gives the same features."""

import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from helpers.packed import pack_noise, save_weights
from protorect import DataError, load_features
from protorect.embedding.extract import extract
from protorect.embedding.partial import partial_extraction

FLUSHING_COMMAND = """
import sys
from protorect.cli import main
from protorect.embedding import partial
partial._SECONDS_BETWEEN_FLUSHES = 0.0
sys.exit(main(sys.argv[1:]))
"""


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
def expected(weights, noise, tmp_path_factory):
    """Features and labels of an extraction without interruption."""
    out = tmp_path_factory.mktemp("expected") / "f.npz"
    assert extract(weights, noise, out) == (True, 0, False, ())
    return load_features(out)


@pytest.mark.parametrize("name", ["f.npz", "store"])
@pytest.mark.usefixtures("small_blocks")
def test_finished_blocks_are_not_computed_again(weights, noise, expected, tmp_path, name):
    out = tmp_path / name
    interrupted(weights, noise, out)
    assert os.listdir(tmp_path) == [f"{name}.partial"]
    progress = []
    done = extract(weights, noise, out, progress=lambda done, total: progress.append(done))
    assert done.resumed == 40
    assert progress == [48, 56, 64, 72, 80, 88, 96, 100]
    assert os.listdir(tmp_path) == [name]
    features, labels = load_features(out)
    np.testing.assert_array_equal(features, expected[0])
    np.testing.assert_array_equal(labels, expected[1])
    assert not extract(weights, noise, out).written


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_loss_of_power_never_leaves_wrong_rows_marked_as_done(
    weights, noise, expected, tmp_path, monkeypatch, seconds
):
    """At worst the disk has the marks of this moment and the rows of the last flush."""
    monkeypatch.setattr("protorect.embedding.partial._SECONDS_BETWEEN_FLUSHES", seconds)
    features = tmp_path / "store.partial" / "store" / "features.npy"
    marks = tmp_path / "store.partial" / "blocks.npy"
    rows, flush, marked = np.full_like(expected[0], -1), np.memmap.flush, []

    def check_disk(*_):
        done = np.repeat(np.load(marks), 8)[: len(rows)]
        np.testing.assert_array_equal(rows[done], expected[0][done])
        marked.append(np.count_nonzero(done))

    def checked_flush(array):
        check_disk()
        flush(array)
        if array.dtype == np.float32:
            rows[:] = np.load(features)
        check_disk()

    monkeypatch.setattr(np.memmap, "flush", checked_flush)
    extract(weights, noise, tmp_path / "store", progress=check_disk)
    assert marked[-1] == 100
    assert sorted(set(marked)) == ([0, *range(8, 100, 8), 100] if seconds == 0 else [0, 100])


@pytest.mark.usefixtures("small_blocks")
def test_rows_are_not_flushed_at_every_block(weights, noise, tmp_path, monkeypatch):
    flushes, flush = [], np.memmap.flush
    monkeypatch.setattr(np.memmap, "flush", lambda array: (flushes.append(1), flush(array)))
    monkeypatch.setattr("protorect.embedding.partial._SECONDS_BETWEEN_FLUSHES", 60.0)
    extract(weights, noise, tmp_path / "store")
    assert len(flushes) == 2  # rows and marks, once


@pytest.mark.usefixtures("small_blocks")
def test_a_partial_extraction_of_something_else_is_refused(weights, noise, tmp_path):
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
    assert extract(weights, noise, out).resumed == 40  # nothing was lost


@pytest.mark.usefixtures("small_blocks")
def test_with_another_block_size_all_blocks_are_computed(
    weights, noise, expected, tmp_path, monkeypatch
):
    interrupted(weights, noise, tmp_path / "f.npz")
    monkeypatch.setattr("protorect.backbones.inference._LARGEST_BATCH", 16)
    assert extract(weights, noise, tmp_path / "f.npz").resumed == 0
    np.testing.assert_array_equal(load_features(tmp_path / "f.npz")[0], expected[0])


@pytest.mark.usefixtures("small_blocks")
def test_a_partial_extraction_of_an_earlier_version_is_computed_again(
    weights, noise, expected, tmp_path
):
    """It has checksums of 64 bits where there are booleans now."""
    interrupted(weights, noise, tmp_path / "f.npz")
    np.save(tmp_path / "f.npz.partial" / "blocks.npy", np.full(13, 2**32, "<u8"))
    assert extract(weights, noise, tmp_path / "f.npz").resumed == 0
    np.testing.assert_array_equal(load_features(tmp_path / "f.npz")[0], expected[0])


def test_after_a_kill_the_same_command_resumes(weights, tmp_path):
    noise = pack_noise(tmp_path / "packed", 256 * 16)
    out, marks = tmp_path / "store", tmp_path / "store.partial" / "blocks.npy"
    running = subprocess.Popen(
        [sys.executable, "-c", FLUSHING_COMMAND, "extract", weights, noise, "--out", out],
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
    extract(weights, noise, tmp_path / "expected.npz")
    expected = load_features(tmp_path / "expected.npz")[0]
    np.testing.assert_array_equal(load_features(out)[0], expected)


def test_a_folder_of_pictures_is_packed_again_and_its_features_are_not(weights, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / "drawings" / name).mkdir(parents=True)
        for number in range(6):
            pixels = rng.integers(0, 256, (30, 30), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "drawings" / name / f"{number}.png")

    def stop_in_the_second_pass(done, total):
        calls.append(done)
        if calls.count(total) == 2:
            raise StoppedError

    calls, out = [], tmp_path / "f.npz"
    with pytest.raises(StoppedError):
        extract(weights, tmp_path / "drawings", out, progress=stop_in_the_second_pass)
    assert sorted(os.listdir(tmp_path / "f.npz.partial")) == ["blocks.npy", "store"]
    assert extract(weights, tmp_path / "drawings", out).resumed == 12
    assert not extract(weights, tmp_path / "drawings", out).written
    with pytest.raises(DataError, match="is inside .* where it would be taken for a class"):
        extract(weights, tmp_path / "drawings", tmp_path / "drawings" / "f.npz")


def test_a_second_command_on_the_same_output_is_refused(weights, noise, tmp_path):
    out = tmp_path / "f.npz"
    with partial_extraction(out), pytest.raises(DataError, match="written by another command"):
        extract(weights, noise, out)
    assert extract(weights, noise, out).written


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["f.npz", "store"])
def test_several_workers_give_the_same_features(weights, noise, expected, tmp_path, name):
    extract(weights, noise, tmp_path / name, workers=3)
    np.testing.assert_array_equal(load_features(tmp_path / name)[0], expected[0])
    assert os.listdir(tmp_path) == [name]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["f.npz", "store"])
def test_a_disk_that_fails_leaves_nothing_that_looks_finished(
    weights, noise, expected, tmp_path, monkeypatch, name
):
    """The system reports lost rows once; the next flush succeeds without them."""
    monkeypatch.setattr("protorect.embedding.partial._SECONDS_BETWEEN_FLUSHES", 0.0)
    calls, flush = [], np.memmap.flush

    def failing_flush(array):
        calls.append(array.dtype)
        if calls.count(np.float32) == 3 and array.dtype == np.float32:
            array[16:24] = -1  # what the disk has
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(array)

    with monkeypatch.context() as patch:
        patch.setattr(np.memmap, "flush", failing_flush)
        with pytest.raises(DataError, match=f"cannot write .*{name}: No space left on device"):
            extract(weights, noise, tmp_path / name)
    assert not (tmp_path / name).exists()
    assert extract(weights, noise, tmp_path / name).resumed == 16
    np.testing.assert_array_equal(load_features(tmp_path / name)[0], expected[0])


def test_a_disk_that_is_too_small_is_reported_before_the_work(
    weights, noise, tmp_path, monkeypatch
):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    calls = []
    with pytest.raises(DataError, match="No space left on device"):
        extract(weights, noise, tmp_path / "f.npz", progress=lambda *done: calls.append(done))
    assert calls == []
    assert os.listdir(tmp_path) == []


def test_a_folder_of_the_user_with_the_name_of_a_partial_extraction_is_left_alone(
    weights, noise, tmp_path
):
    (tmp_path / "f.npz.partial").mkdir()
    (tmp_path / "f.npz.partial" / "thesis.tex").write_text("mine")
    with pytest.raises(DataError, match=r"holds something else \(thesis.tex\). Move it away"):
        extract(weights, noise, tmp_path / "f.npz")
    assert os.listdir(tmp_path / "f.npz.partial") == ["thesis.tex"]


def test_a_damaged_partial_extraction_is_refused(weights, noise, tmp_path):
    interrupted(weights, noise, tmp_path / "store")
    (tmp_path / "store.partial" / "store" / "features.npy").write_bytes(b"no array")
    with pytest.raises(DataError, match="features.npy is damaged.* Remove it and extract again"):
        extract(weights, noise, tmp_path / "store")
