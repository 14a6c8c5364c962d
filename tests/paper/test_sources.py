import numpy as np
import pytest

from helpers.feature_files import write_features
from protorect import DataError
from protorect.paper.sources import FeatureFolder, Source, commands

OMNIGLOT = Source("omniglot", "conv64")


def test_both_splits_are_read_with_what_made_them(features):
    held = FeatureFolder(features).open(OMNIGLOT)
    assert (held.val.features != held.test.features).any()
    origin = held.test.origin()
    assert origin["file"] == "omniglot-conv64-test.npz"
    assert (origin["data"], origin["split"], origin["weights"]) == ("omniglot", "test", "w" * 64)
    assert len(origin["sha256"]) == 64
    assert origin["sha256"] != held.val.origin()["sha256"]


def test_the_hash_is_of_the_values_not_of_the_file(tmp_path, features):
    write_features(tmp_path, "omniglot", "conv64", "val", seed=0)
    write_features(tmp_path, "omniglot", "conv64", "test", seed=1)
    again, first = (FeatureFolder(f).open(OMNIGLOT).test.origin() for f in (tmp_path, features))
    assert again == first


def test_a_source_needs_both_splits(tmp_path):
    folder = FeatureFolder(tmp_path)
    assert folder.missing(OMNIGLOT) == ["val", "test"]
    write_features(tmp_path, "omniglot", "conv64", "test")
    assert folder.missing(OMNIGLOT) == ["val"]
    assert not folder.has(OMNIGLOT)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"data": "cub"}, "its data is 'cub', not 'omniglot' as its name says"),
        ({"backbone": "conv128"}, "its backbone is 'conv128', not 'conv64'"),
        ({"split": "train"}, "its split is 'train', not 'test'"),
        ({"weights": "others"}, "were made by different weights"),
    ],
)
def test_features_of_something_else_are_refused(tmp_path, other, message):
    write_features(tmp_path, "omniglot", "conv64", "val")
    write_features(tmp_path, "omniglot", "conv64", "test", says=other)
    with pytest.raises(DataError, match=message):
        FeatureFolder(tmp_path).open(OMNIGLOT)


def test_features_that_do_not_say_what_made_them_are_refused(tmp_path):
    for split in ("val", "test"):
        np.savez(tmp_path / OMNIGLOT.file(split), features=np.eye(3), labels=[0, 1, 2])
    with pytest.raises(DataError, match="does not say what made it"):
        FeatureFolder(tmp_path).open(OMNIGLOT)


def test_commands_use_the_committed_configuration(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert commands(OMNIGLOT)[1] == (
        "protorect train data/omniglot --backbone conv64 --out runs/omniglot-conv64"
    )
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "omniglot-conv64.toml").touch()
    lines = commands(OMNIGLOT, FeatureFolder(tmp_path), ["val"])
    assert lines == [
        "protorect prepare omniglot OMNIGLOT --out data/omniglot",
        "protorect train data/omniglot --config configs/omniglot-conv64.toml "
        "--out runs/omniglot-conv64",
        "protorect extract runs/omniglot-conv64 data/omniglot --split val "
        f"--out {tmp_path}/omniglot-conv64-val.npz",
    ]


def test_a_pretrained_backbone_is_not_trained():
    lines = commands(Source("meta-cu-birds", "efficientnet-lite0"))
    assert not any("train" in line for line in lines)
    assert lines[1].startswith("protorect extract efficientnet-lite0 data/meta-cu-birds")
