from contextlib import nullcontext

import numpy as np
import pytest

from helpers.feature_files import write_features
from protorect import DataError
from protorect.paper.feature_sets import FeatureFolder, FeatureSet

OMNIGLOT = FeatureSet("omniglot", "conv64")
WIDER = FeatureSet("omniglot", "conv128")


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
    assert FeatureFolder().commands([(WIDER, [])])[1] == (
        "protorect train data/omniglot --backbone conv128 --out runs/omniglot-conv128"
    )
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "omniglot-conv128.toml").touch()
    lines = FeatureFolder(tmp_path).commands([(WIDER, ["val"])])
    assert lines == [
        "protorect prepare omniglot OMNIGLOT --out data/omniglot",
        "protorect train data/omniglot --config configs/omniglot-conv128.toml "
        "--out runs/omniglot-conv128",
        "protorect extract runs/omniglot-conv128 data/omniglot --split val "
        f"--out {tmp_path}/omniglot-conv128-val.npz",
    ]


def test_weights_of_the_package_need_no_training_unless_there_is_a_run(tmp_path):
    lines = FeatureFolder().commands([(OMNIGLOT, ["test"])])
    assert lines[1].startswith("protorect extract omniglot-conv64 data/omniglot --split test")
    (tmp_path / "omniglot-conv64").mkdir()
    assert FeatureFolder(runs=tmp_path).network(OMNIGLOT) == str(tmp_path / "omniglot-conv64")


def test_the_commands_of_another_seed_and_of_a_version_of_the_data(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "cub-conv64.toml").touch()
    lines = FeatureFolder().commands([(FeatureSet("cub", "conv64", "seed1"), ["val"])])
    assert lines == [
        "protorect prepare cub CUB --crop boxes --out data/cub",
        "protorect train data/cub --config configs/cub-conv64.toml --set seed=1 "
        "--out runs/cub-conv64-seed1",
        "protorect extract runs/cub-conv64-seed1 data/cub --split val "
        "--out features/cub-conv64-seed1-val.npz",
    ]
    whole = FeatureFolder().commands([(FeatureSet("cub-whole", "conv64"), [])])
    assert whole[0] == "protorect prepare cub CUB --crop none --out data/cub-whole"


def test_a_version_of_a_data_set_has_its_name_in_the_manifest(tmp_path):
    whole = FeatureSet("cub-whole", "conv64")
    for split in ("val", "test"):
        write_features(tmp_path, "cub", "conv64", split)
        (tmp_path / f"cub-conv64-{split}.npz").rename(tmp_path / whole.file(split))
    assert FeatureFolder(tmp_path).load(whole)[1].provenance()["data"] == "cub-whole"


@pytest.mark.parametrize(("crop", "refused"), [("boxes", False), ("before", False), ("none", True)])
def test_cropped_and_whole_pictures_are_not_mixed_up(tmp_path, crop, refused):
    for split in ("val", "test"):
        write_features(tmp_path, "cub", "conv64", split, manifest={"crop": crop})
    message = "its pictures have crop 'none'; cub is prepared with --crop boxes"
    with pytest.raises(DataError, match=message) if refused else nullcontext():
        FeatureFolder(tmp_path).load(FeatureSet("cub", "conv64"))


def test_a_pretrained_backbone_is_not_trained():
    birds = FeatureSet("meta-cu-birds", "efficientnet-lite0")
    lines = FeatureFolder().commands([(birds, ["val", "test"])])
    assert not any("train" in line for line in lines)
    assert lines[1].startswith("protorect extract efficientnet-lite0 data/meta-cu-birds")


def test_commands_of_several_feature_sets_are_ordered_by_step_and_not_repeated():
    wide = FeatureSet("omniglot", "resnet12")
    lines = FeatureFolder().commands([(WIDER, ["test"]), (wide, ["test"])])
    steps = [line.split()[1] for line in lines]
    assert steps == ["prepare", "train", "train", "extract", "extract"]
