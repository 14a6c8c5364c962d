"""All of miniImageNet, from the three zips."""

from protorect.datasets.catalogue import find_dataset
from protorect.datasets.prepare import find_splits
from protorect.datasets.splits import SPLITS


def test_the_zips_hold_the_published_split(real_data, tmp_path):
    root = real_data("mini_imagenet")
    splits, found = find_splits(find_dataset("mini-imagenet"), root, tmp_path, None, seed=0)
    assert [len(splits[split]) for split in SPLITS] == [64, 16, 20]
    assert {len(pictures) for classes in splits.values() for pictures in classes.values()} == {600}
    assert found.remarks == found.unused == ()
