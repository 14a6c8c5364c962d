"""An interrupted extraction is resumed by the same call and gives the same features."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from helpers.packed import pack_noise, save_weights
from protorect import DataError, load_features
from protorect.backbones.inference import uses_bfloat16
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


def pictures_done(out):
    """Number of pictures that are recorded as done."""
    path = out.parent / f"{out.name}.partial" / "progress.json"
    return json.loads(path.read_text())[0] if path.exists() else 0


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_loss_of_power_never_leaves_wrong_rows_recorded_as_done(
    weights, noise, expected, tmp_path, monkeypatch, seconds
):
    """At worst the disk has the record of this moment and the rows of the last flush."""
    monkeypatch.setattr("protorect.embedding.partial._SECONDS_BETWEEN_FLUSHES", seconds)
    out = tmp_path / "store"
    features = tmp_path / "store.partial" / "store" / "features.npy"
    rows, fsync, recorded = np.full_like(expected[0], -1), os.fsync, []

    def check_disk(*_):
        done = pictures_done(out)
        np.testing.assert_array_equal(rows[:done], expected[0][:done])
        recorded.append(done)

    def checked_fsync(descriptor):
        check_disk()
        fsync(descriptor)
        rows[:] = np.load(features)
        check_disk()

    monkeypatch.setattr(os, "fsync", checked_fsync)
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda *paths: (check_disk(), replace(*paths)))
    extract(weights, noise, out, progress=check_disk)
    assert sorted(set(recorded)) == ([0, *range(8, 100, 8), 100] if seconds == 0 else [0, 100])


@pytest.mark.usefixtures("small_blocks")
def test_rows_are_not_flushed_at_every_block(weights, noise, tmp_path, monkeypatch):
    flushes, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (flushes.append(file), fsync(file)))
    monkeypatch.setattr("protorect.embedding.partial._SECONDS_BETWEEN_FLUSHES", 60.0)
    extract(weights, noise, tmp_path / "store")
    assert len(flushes) == 1


@pytest.mark.usefixtures("small_blocks")
def test_a_partial_extraction_of_something_else_is_refused(weights, noise, tmp_path):
    out = tmp_path / "f.npz"
    interrupted(weights, noise, out)
    other = save_weights(tmp_path / "other.safetensors", seed=1)
    with pytest.raises(DataError, match="f.npz.partial .* another origin: weights differs. Remove"):
        extract(other, noise, out)
    others = pack_noise(tmp_path / "others", 100, seed=1)
    with pytest.raises(DataError, match="another origin: pictures differs"):
        extract(weights, others, out)
    precision = "float32" if uses_bfloat16("auto") else "bfloat16"
    with pytest.raises(DataError, match="another origin: precision differs"):
        extract(weights, noise, out, precision=precision)
    assert extract(weights, noise, out).resumed == 40  # nothing was lost


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_another_size_continue(weights, noise, expected, tmp_path, monkeypatch):
    interrupted(weights, noise, tmp_path / "f.npz")
    monkeypatch.setattr("protorect.embedding.extract.ROWS_PER_BLOCK", 16)
    assert extract(weights, noise, tmp_path / "f.npz").resumed == 40
    np.testing.assert_array_equal(load_features(tmp_path / "f.npz")[0], expected[0])


@pytest.mark.usefixtures("small_blocks")
def test_a_partial_extraction_of_an_earlier_version_is_computed_again(
    weights, noise, expected, tmp_path
):
    """It has marks of blocks where there is a number of pictures now."""
    interrupted(weights, noise, tmp_path / "f.npz")
    (tmp_path / "f.npz.partial" / "progress.json").unlink()
    np.save(tmp_path / "f.npz.partial" / "blocks.npy", np.ones(13, bool))
    assert extract(weights, noise, tmp_path / "f.npz").resumed == 0
    np.testing.assert_array_equal(load_features(tmp_path / "f.npz")[0], expected[0])
    assert os.listdir(tmp_path) == ["f.npz"]


@pytest.mark.parametrize(
    "record",
    [
        *(
            "",
            "{}",
            "[40]",
            '["a", [], ""]',
            '[101, [], ""]',
            '[9, [[100, "x"]], ""]',
            "[9, [], 1]",
        ),
        *('[8, [[8, "x"]], ""]', '[8, [[1, "x"], [1, "x"]], ""]', '[8, [[2, "x"], [1, "x"]], ""]'),
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_a_damaged_record_of_what_is_done_is_not_used(weights, noise, expected, tmp_path, record):
    interrupted(weights, noise, tmp_path / "f.npz")
    (tmp_path / "f.npz.partial" / "progress.json").write_text(record)
    assert extract(weights, noise, tmp_path / "f.npz").resumed == 0
    np.testing.assert_array_equal(load_features(tmp_path / "f.npz")[0], expected[0])


def test_after_a_kill_the_same_command_resumes(weights, tmp_path):
    noise = pack_noise(tmp_path / "packed", 256 * 16)
    out = tmp_path / "store"
    running = subprocess.Popen(
        [sys.executable, "-c", FLUSHING_COMMAND, "extract", weights, noise, "--out", out],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while pictures_done(out) < 512:
        assert running.poll() is None, running.communicate()
        time.sleep(0.005)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert not out.exists()
    assert extract(weights, noise, out).resumed >= 512
    extract(weights, noise, tmp_path / "expected.npz")
    expected = load_features(tmp_path / "expected.npz")[0]
    np.testing.assert_array_equal(load_features(out)[0], expected)


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
    calls, fsync = [], os.fsync

    def failing_fsync(descriptor):
        calls.append(descriptor)
        if len(calls) == 3:
            rows = np.load(tmp_path / f"{name}.partial" / "store" / "features.npy", mmap_mode="r+")
            rows[16:24] = -1  # what the disk has
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing_fsync)
        with pytest.raises(DataError, match=f"cannot write .*{name}: No space left on device"):
            extract(weights, noise, tmp_path / name)
    assert len(calls) == 4  # it was tried again when the file was closed
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


@pytest.mark.parametrize("file", ["labels.npy", "class_names.json"])
@pytest.mark.usefixtures("small_blocks")
def test_labels_that_were_changed_since_the_interruption_are_refused(
    weights, noise, tmp_path, file
):
    out = tmp_path / "f.npz"
    interrupted(weights, noise, out)
    path = tmp_path / "f.npz.partial" / "store" / file
    if file == "labels.npy":
        np.save(path, np.load(path)[::-1])
    else:
        path.write_text(json.dumps(json.loads(path.read_text())[::-1]))
    with pytest.raises(DataError, match="f.npz.partial is damaged. Remove it and extract again"):
        extract(weights, noise, out)
    assert not out.exists()
