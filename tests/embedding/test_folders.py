"""`extract` of class folders: as fast as `sort`, resumable, without unreadable pictures."""

import os
import shutil
import tarfile
import zipfile
from contextlib import nullcontext

import numpy as np
import pytest

from helpers.crashes import crash_at
from helpers.pictures import class_folders, encoded
from protorect import DataError, OptionError, load_features
from protorect.cli import main
from protorect.datasets.prepare import prepare
from protorect.embedding import picture_sets, pipeline
from protorect.embedding.cache import FeatureCache
from protorect.embedding.extract import extract
from protorect.embedding.sources import load_embedder
from protorect.embedding.store import read_provenance
from protorect.images.find import find_pictures

BROKEN = {"a/1.png": b"text", "a/9.png": b"", "b/4.png": encoded()[:90]}
REASONS = ("a/1.png: not a picture", "a/9.png: empty file", "b/4.png: truncated")


class StoppedError(Exception):
    pass


@pytest.fixture
def folder(tmp_path):
    """Two classes of 12 pictures."""
    return class_folders(tmp_path / "pictures", ["a", "b"], 12)


@pytest.fixture
def with_broken(folder):
    """The same with three pictures that cannot be read."""
    for name, data in BROKEN.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def decoded(monkeypatch):
    """The number of pictures that are decoded, as it grows."""
    calls = []

    def counting(*arguments):
        calls.append(1)
        return decode(*arguments)

    decode = pipeline.decode
    monkeypatch.setattr(pipeline, "decode", counting)
    return calls


def stopping(pictures):
    def progress(done, total):
        assert done <= total
        if done >= pictures:
            raise StoppedError

    return progress


def extracted(*arguments, **options):
    """Features and labels."""
    done = extract(*arguments, **options)
    assert done.written
    return load_features(arguments[2])


@pytest.mark.parametrize("name", ["f.npz", "store"])
def test_features_are_those_of_the_packed_pictures(color_weights, folder, tmp_path, name):
    prepare("folder", folder, tmp_path / "packed", size=28, channels=3, split=(0.0, 0.0, 1.0))
    packed = extracted(color_weights, tmp_path / "packed", tmp_path / "packed.npz")
    features, labels = extracted(color_weights, folder, tmp_path / name)
    np.testing.assert_allclose(features, packed[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(labels, packed[1])


def test_features_and_network_are_those_of_sorting(color_weights, folder, tmp_path):
    features, _ = extracted(color_weights, folder, tmp_path / "f.npz", cache=False)
    embedder = load_embedder(color_weights)
    pictures = find_pictures(folder).pictures
    sorted_ones = pipeline.embed_pictures(pictures, embedder, FeatureCache(None))
    np.testing.assert_allclose(features, sorted_ones.features, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["f.npz", "store"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.usefixtures("small_blocks")
def test_unreadable_pictures_are_reported_and_have_no_row(
    color_weights, with_broken, tmp_path, name, workers
):
    done = extract(color_weights, with_broken, tmp_path / name, workers=workers)
    assert all(one.startswith(why) for one, why in zip(done.unreadable, REASONS, strict=True))
    features, labels = load_features(tmp_path / name)
    assert labels.tolist() == ["a"] * 10 + ["b"] * 11
    for broken in BROKEN:
        (with_broken / broken).unlink()
    expected = extracted(color_weights, with_broken, tmp_path / "expected.npz")
    np.testing.assert_allclose(features, expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(labels, expected[1])
    assert sorted(os.listdir(tmp_path)) == sorted([name, "expected.npz", "pictures"])


@pytest.mark.parametrize("name", ["f.npz", "store"])
@pytest.mark.parametrize("stop", [8, 16, 24])
@pytest.mark.usefixtures("small_blocks")
def test_pictures_that_are_done_are_not_decoded_again(
    color_weights, with_broken, tmp_path, decoded, name, stop
):
    expected = extracted(color_weights, with_broken, tmp_path / "expected.npz", cache=False)
    options = {"cache": False, "workers": 1}
    with pytest.raises(StoppedError):
        extract(color_weights, with_broken, tmp_path / name, progress=stopping(stop), **options)
    assert not (tmp_path / name).exists()
    decoded.clear()
    seen = []
    done = extract(
        color_weights,
        with_broken,
        tmp_path / name,
        progress=lambda *counts: seen.append(counts),
        **options,
    )
    assert done.resumed == stop
    assert len(decoded) == 24 - stop
    assert seen == [(count, 24) for count in range(stop + 8, 25, 8)]
    assert [one.split(":")[0] for one in done.unreadable] == list(BROKEN)
    features, labels = load_features(tmp_path / name)
    np.testing.assert_array_equal(features, expected[0])
    np.testing.assert_array_equal(labels, expected[1])
    origins = [read_provenance(tmp_path / one) for one in (name, "expected.npz")]
    assert origins[0] == origins[1]


@pytest.mark.parametrize("name", ["f.npz", "store"])
@pytest.mark.parametrize("broken", [True, False])
@pytest.mark.usefixtures("small_blocks")
def test_a_crash_at_any_moment_loses_nothing(
    color_weights, with_broken, tmp_path, monkeypatch, name, broken
):
    """After a crash before or after any file operation the same call gives the same features."""

    def unlocked(path, _):
        path.parent.mkdir(exist_ok=True)
        return nullcontext()

    # The lock of a process that crashes is released by the system.
    monkeypatch.setattr("protorect.embedding.partial.locked", unlocked)
    monkeypatch.setattr("protorect.embedding.partial._SECONDS_BETWEEN_FLUSHES", 0.0)
    if not broken:
        for picture in BROKEN:
            (with_broken / picture).unlink()
    options = {"cache": False, "workers": 1}
    expected = extracted(color_weights, with_broken, tmp_path / "expected.npz", **options)
    out, crashes = tmp_path / name, 0
    for after in (False, True):
        for number in range(1, 1000):
            with crash_at(number, after) as crashed:
                extract(color_weights, with_broken, out, **options)
            crashes += len(crashed)
            if out.exists():
                assert read_provenance(out) == read_provenance(tmp_path / "expected.npz")
            extract(color_weights, with_broken, out, **options)
            features, labels = load_features(out)
            np.testing.assert_array_equal(features, expected[0])
            np.testing.assert_array_equal(labels, expected[1])
            assert not (tmp_path / f"{name}.partial").exists()
            assert name == "f.npz" or len(os.listdir(out)) == 4
            shutil.rmtree(out) if out.is_dir() else out.unlink()
            if not crashed:
                break
    assert crashes > 20


@pytest.mark.usefixtures("small_blocks")
def test_pictures_that_changed_since_the_interruption_are_refused(color_weights, folder, tmp_path):
    out = tmp_path / "f.npz"
    with pytest.raises(StoppedError):
        extract(color_weights, folder, out, progress=stopping(8))
    shutil.copy(folder / "a" / "1.png", folder / "a" / "0.png")
    with pytest.raises(DataError, match="f.npz.partial exists already .* origin: files differs"):
        extract(color_weights, folder, out)


def test_finished_features_are_recognized_by_the_contents(color_weights, folder, tmp_path, decoded):
    out = tmp_path / "f.npz"
    assert extract(color_weights, folder, out).written
    decoded.clear()
    assert not extract(color_weights, folder, out).written
    shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile)
    assert not extract(color_weights, tmp_path / "copy", out).written
    assert not decoded
    shutil.copy(folder / "a" / "1.png", folder / "a" / "0.png")
    with pytest.raises(DataError, match="another origin: pictures differs"):
        extract(color_weights, folder, out)


def test_features_in_the_cache_are_not_computed_again(color_weights, folder, tmp_path, decoded):
    first = extracted(color_weights, folder, tmp_path / "1.npz", cache=tmp_path / "cache")
    assert len(decoded) == 24
    second = extracted(color_weights, folder, tmp_path / "2.npz", cache=tmp_path / "cache")
    assert len(decoded) == 24
    np.testing.assert_array_equal(first[0], second[0])
    extracted(color_weights, folder, tmp_path / "3.npz", cache=False)
    assert len(decoded) == 48


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_pictures_in_an_archive(color_weights, folder, tmp_path, kind):
    """Pictures of one archive are different files for the cache."""
    archive = tmp_path / f"pictures.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(folder.rglob("*.png")):
                file.write(path, path.relative_to(folder))
    else:
        with tarfile.open(archive, "w:gz" if kind == "tar.gz" else "w") as file:
            file.add(folder, "pictures")
    expected = extracted(color_weights, folder, tmp_path / "folder.npz", cache=False)
    features, labels = extracted(color_weights, archive, tmp_path / "f.npz")
    np.testing.assert_allclose(features, expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(labels, expected[1])
    assert not extract(color_weights, folder, tmp_path / "f.npz").written
    assert not (tmp_path / "f.npz.partial").exists()


def test_a_class_without_a_readable_picture_is_an_error(color_weights, folder, tmp_path):
    for path in (folder / "a").iterdir():
        path.write_text("text")
    message = r"class a has no readable picture \(12 unreadable: a/0.png: .*Add at least one .jpg"
    with pytest.raises(DataError, match=message):
        extract(color_weights, folder, tmp_path / "f")
    assert os.listdir(tmp_path) == ["pictures"]


def test_the_brightness_is_that_of_a_bounded_sample(color_weights, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(picture_sets, "_SAMPLE", 5)
    read = []

    def counting(data, *arguments):
        read.append(data)
        return decode(data, *arguments)

    decode = picture_sets.decode
    monkeypatch.setattr(picture_sets, "decode", counting)
    mean = picture_sets.find_folders(folder, tmp_path / "scratch").mean()
    paths = sorted(folder.rglob("*.png"), key=str)
    assert read == [path.read_bytes() for path in paths[::5]]
    assert len(mean) == 1
    assert 0 < mean[0] < 1
    extract(color_weights, folder, tmp_path / "f.npz")
    assert len(read) == 5  # a network for photographs needs no brightness


def test_an_onnx_network_embeds_folders_and_packed_pictures_of_another_size(folder, tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    axes = onnx.helper.make_tensor("axes", onnx.TensorProto.INT64, [2], [2, 3])
    node = onnx.helper.make_node("ReduceMean", ["pixels", "axes"], ["features"], keepdims=0)
    inputs = onnx.helper.make_tensor_value_info("pixels", 1, ["n", 3, 40, 40])
    outputs = onnx.helper.make_tensor_value_info("features", 1, None)
    graph = onnx.helper.make_graph([node], "means", [inputs], [outputs], [axes])
    opset = [onnx.helper.make_opsetid("", 18)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=9), tmp_path / "m.onnx")
    source = f"onnx:{tmp_path / 'm.onnx'}:mean=0,std=1"
    features, _ = extracted(source, folder, tmp_path / "f.npz")
    assert features.shape == (24, 3)
    assert read_provenance(tmp_path / "f.npz")["backbone"] == "onnx:m.onnx"
    prepare("folder", folder, tmp_path / "packed", size=20, channels=1, split=(0.0, 0.0, 1.0))
    packed, _ = extracted(source, tmp_path / "packed", tmp_path / "p.npz")
    np.testing.assert_allclose(packed.mean(axis=1), features @ [0.299, 0.587, 0.114], atol=0.02)


@pytest.mark.parametrize("split", ["test", "val", "nonsense"])
def test_class_folders_have_no_splits(color_weights, folder, tmp_path, split):
    message = "only packed data sets have splits; `protorect prepare` makes one"
    with pytest.raises(OptionError, match=message):
        extract(color_weights, folder, tmp_path / "f.npz", split=split)
    assert os.listdir(tmp_path) == ["pictures"]
    with pytest.raises(DataError, match="missing"):
        extract(color_weights, tmp_path / "missing", tmp_path / "f.npz", split=split)


def test_the_command_refuses_a_split_of_class_folders(color_weights, folder, tmp_path, capsys):
    line = ["extract", str(color_weights), str(folder), "--out", str(tmp_path / "f.npz")]
    assert main([*line, "--split", "test"]) == 2
    assert "only packed data sets have splits" in capsys.readouterr().err
    assert main(line) == 0
