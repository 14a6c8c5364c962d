import numpy as np
import pytest

from helpers.feature_files import write_features
from protorect import DataError
from protorect.paper.feature_sets import FeatureFolder, FeatureSet

OMNIGLOT = FeatureSet("omniglot", "conv64")


def test_both_splits_are_loaded_with_their_provenance(features):
    val, test = FeatureFolder(features).load(OMNIGLOT)
    assert (val.features != test.features).any()
    origin = test.provenance()
    assert origin["file"] == "omniglot-conv64-test.npz"
    assert (origin["data"], origin["split"], origin["weights"]) == ("omniglot", "test", "w" * 64)
    assert len(origin["sha256"]) == 64
    assert origin["sha256"] != val.provenance()["sha256"]


def test_the_hash_is_of_the_values_not_of_the_file(tmp_path, features):
    write_features(tmp_path, "omniglot", "conv64", "val", seed=0)
    write_features(tmp_path, "omniglot", "conv64", "test", seed=1)
    again, first = (FeatureFolder(f).load(OMNIGLOT)[1].provenance() for f in (tmp_path, features))
    assert again == first


def test_both_splits_are_needed(tmp_path):
    folder = FeatureFolder(tmp_path)
    assert folder.missing_splits(OMNIGLOT) == ["val", "test"]
    write_features(tmp_path, "omniglot", "conv64", "test")
    assert folder.missing_splits(OMNIGLOT) == ["val"]
    write_features(tmp_path, "omniglot", "conv64", "val")
    assert folder.missing_splits(OMNIGLOT) == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"data": "cub"}, "its data is 'cub', not 'omniglot' as its name says"),
        ({"backbone": "conv128"}, "its backbone is 'conv128', not 'conv64'"),
        ({"split": "train"}, "its split is 'train', not 'test'"),
        ({"weights": "others"}, "were made by different weights"),
    ],
)
def test_a_file_that_does_not_match_its_name_is_an_error(tmp_path, other, message):
    write_features(tmp_path, "omniglot", "conv64", "val")
    write_features(tmp_path, "omniglot", "conv64", "test", manifest=other)
    with pytest.raises(DataError, match=message):
        FeatureFolder(tmp_path).load(OMNIGLOT)


def test_a_file_without_a_manifest_is_an_error(tmp_path):
    for split in ("val", "test"):
        np.savez(tmp_path / OMNIGLOT.file(split), features=np.eye(3), labels=[0, 1, 2])
    with pytest.raises(DataError, match="does not say what made it"):
        FeatureFolder(tmp_path).load(OMNIGLOT)


def test_commands_use_the_committed_configuration(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert FeatureFolder().commands([(OMNIGLOT, [])])[1] == (
        "protorect train data/omniglot --backbone conv64 --out runs/omniglot-conv64"
    )
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "omniglot-conv64.toml").touch()
    lines = FeatureFolder(tmp_path).commands([(OMNIGLOT, ["val"])])
    assert lines == [
        "protorect prepare omniglot OMNIGLOT --out data/omniglot",
        "protorect train data/omniglot --config configs/omniglot-conv64.toml "
        "--out runs/omniglot-conv64",
        "protorect extract runs/omniglot-conv64 data/omniglot --split val "
        f"--out {tmp_path}/omniglot-conv64-val.npz",
    ]


def test_a_pretrained_backbone_is_not_trained():
    birds = FeatureSet("meta-cu-birds", "efficientnet-lite0")
    lines = FeatureFolder().commands([(birds, ["val", "test"])])
    assert not any("train" in line for line in lines)
    assert lines[1].startswith("protorect extract efficientnet-lite0 data/meta-cu-birds")


def test_commands_of_several_feature_sets_are_ordered_by_step_and_not_repeated():
    wide = FeatureSet("omniglot", "resnet12")
    lines = FeatureFolder().commands([(OMNIGLOT, ["test"]), (wide, ["test"])])
    steps = [line.split()[1] for line in lines]
    assert steps == ["prepare", "train", "train", "extract", "extract"]
