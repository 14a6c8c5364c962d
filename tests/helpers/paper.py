"""Folders that `protorect paper` reads: feature files, packed pictures and a training run."""

from helpers.feature_files import write_features
from helpers.packed import pack_noise, save_weights
from protorect.embedding.extract import extract
from protorect.paper.feature_sets import SPLITS, FeatureFolder

FEATURE_SETS = (
    ("omniglot", "conv64"),
    ("cub", "conv64"),
    ("meta-omniglot", "efficientnet-lite0"),
    ("meta-cu-birds", "efficientnet-lite0"),
)


def write_feature_sets(folder):
    """Write small features of `FEATURE_SETS`, both splits of each."""
    for number, source in enumerate(FEATURE_SETS):
        for split_number, split in enumerate(SPLITS):
            write_features(folder, *source, split, seed=2 * number + split_number)
    return folder


def write_pictures(root):
    """Write packed pictures of Omniglot, a run of conv64 and the features that it extracts."""
    folder = FeatureFolder(root / "features", root / "data", root / "runs")
    packed, run = folder.data / "omniglot", folder.runs / "omniglot-conv64"
    pack_noise(packed, 105, classes=5, splits=SPLITS, dataset="omniglot")
    run.mkdir(parents=True)
    save_weights(run / "best.safetensors", data="omniglot")
    folder.path.mkdir()
    for split in SPLITS:
        extract(run, packed, folder.path / f"omniglot-conv64-{split}.npz", split=split)
    return folder
