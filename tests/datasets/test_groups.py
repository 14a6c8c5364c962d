"""Groups of near-duplicates, from the names of pictures to the episodes."""

import csv

import numpy as np
import pytest
from PIL import Image

from helpers.packed import save_weights
from helpers.pictures import encoded, pixels
from protorect.cli import main
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import prepare
from protorect.datasets.splits import ClassSplit
from protorect.embedding.extract import extract
from protorect.errors import DataError
from protorect.evaluation.features import FeatureTable
from protorect.evaluation.sampling import sample_episodes

CLASSES = [f"{number:05}" for number in range(4)]
TRACKS, FRAMES = 6, 3
SPLIT = ClassSplit((), (), tuple(f"{number:02}.sign" for number in range(4)))


@pytest.fixture
def signs(tmp_path, monkeypatch):
    """Traffic signs as distributed: TRACK_FRAME.ppm in numbered class folders."""
    monkeypatch.setattr("protorect.datasets.catalogue.known_split", lambda _: SPLIT)
    root = tmp_path / "GTSRB" / "Final_Training" / "Images"
    for number, name in enumerate(CLASSES):
        (root / name).mkdir(parents=True)
        for track in range(TRACKS):
            for frame in range(FRAMES):
                seed = 100 * number + 10 * track + frame
                data = encoded(Image.fromarray(pixels(seed, 30, 30)), "PPM")
                (root / name / f"{track:05}_{frame:05}.ppm").write_bytes(data)
    return tmp_path / "GTSRB"


def test_a_group_is_a_track_of_a_class(signs, tmp_path):
    unreadable = signs / "Final_Training" / "Images" / CLASSES[1] / "00002_00001.ppm"
    unreadable.write_bytes(b"")
    packed = prepare("meta-traffic-sign", signs, tmp_path / "packed", size=28, workers=1)
    groups = packed.split("test").groups
    sizes = [FRAMES] * len(CLASSES) * TRACKS
    sizes[TRACKS + 2] -= 1
    np.testing.assert_array_equal(np.bincount(groups), sizes)
    assert packed.manifest["remarks"] == []
    with (packed.path / "index.csv").open() as file:
        lines = [line for line in csv.DictReader(file) if line["row"]]
    assert [line["group"] for line in lines[:4]] == ["00000"] * 3 + ["00001"]
    labels = packed.split("test").labels
    for line in lines:
        assert groups[int(line["row"])] == TRACKS * labels[int(line["row"])] + int(line["group"])


def test_the_digest_depends_on_the_groups(signs, tmp_path):
    first = prepare("meta-traffic-sign", signs, tmp_path / "a", size=28, workers=1)
    folder = signs / "Final_Training" / "Images" / CLASSES[0]
    (folder / "00005_00002.ppm").rename(folder / "00006_00002.ppm")
    second = prepare("meta-traffic-sign", signs, tmp_path / "b", size=28, workers=1)
    np.testing.assert_array_equal(first.split("test").images, second.split("test").images)
    assert first.split("test").digest != second.split("test").digest


def test_pictures_named_otherwise_are_groups_of_their_own_and_said(signs, tmp_path):
    folder = signs / "Final_Training" / "Images" / CLASSES[0]
    for path in folder.glob("00000_*"):
        path.rename(folder / f"photo{path.name[-5:]}")
    packed = prepare("meta-traffic-sign", signs, tmp_path / "packed", size=28, workers=1)
    assert len(np.unique(packed.split("test").groups)) == len(CLASSES) * TRACKS - 1 + FRAMES
    [remark] = packed.manifest["remarks"]
    assert remark.startswith("the names of 3 pictures (")


@pytest.mark.parametrize("out", ["f.npz", "store"])
def test_support_and_queries_of_extracted_features_share_no_track(signs, tmp_path, capsys, out):
    prepare("meta-traffic-sign", signs, tmp_path / "packed", size=28, channels=1, workers=1)
    run = save_weights(tmp_path / "run.safetensors")
    extract(run, tmp_path / "packed", tmp_path / out)
    table = FeatureTable.of(tmp_path / out)
    np.testing.assert_array_equal(
        table.groups, PackedDataset.open(tmp_path / "packed").split("test").groups
    )
    episodes = sample_episodes(
        table.labels, way=4, shot=2, query=5, episodes=50, groups=table.groups
    )
    for support, query in zip(episodes.support, episodes.query, strict=True):
        assert not set(table.groups[support.ravel()]) & set(table.groups[query])
    line = ["evaluate", tmp_path / out, "--way", 4, "--shot", 2, "--query", 5, "--episodes", 5]
    assert main([str(word) for word in [*line, "--method", "cspn"]]) == 0
    assert "24 groups in" in capsys.readouterr().err


def test_missing_or_damaged_groups_are_an_error(signs, tmp_path):
    packed = prepare("meta-traffic-sign", signs, tmp_path / "packed", size=28, workers=1)
    path = packed.path / "test-groups.npy"
    np.save(path, np.zeros(3, np.int64))
    with pytest.raises(DataError, match=r"test-groups\.npy"):
        PackedDataset.open(packed.path)
    path.unlink()
    with pytest.raises(DataError, match=r"test-groups\.npy.* missing"):
        PackedDataset.open(packed.path)
