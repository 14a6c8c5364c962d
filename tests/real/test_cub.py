"""All of CUB-200-2011, from the tar."""

import csv
import hashlib
import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from protorect.datasets.catalogue import find_dataset
from protorect.datasets.prepare import find_splits, prepare


@pytest.fixture(scope="module")
def archive(real_data):
    return real_data("CUB_200_2011_84px.tar")


@pytest.fixture(scope="module")
def packed(archive, tmp_path_factory):
    return prepare("cub", archive, tmp_path_factory.mktemp("cub") / "packed", workers=2)


def test_all_pictures_are_packed(packed):
    splits = [packed.split(name) for name in ("train", "val", "test")]
    assert [len(split.class_names) for split in splits] == [100, 50, 50]
    assert sum(len(split.images) for split in splits) == 11_788
    assert packed.manifest["unreadable"] == []
    assert all(split.images.shape[1:] == (84, 84, 3) for split in splits)
    assert all(40 <= count <= 60 for split in splits for count in np.bincount(split.labels))


def test_the_index_names_the_row_of_each_picture(packed, archive):
    """Compare some rows with pictures decoded directly from the archive."""
    with (packed.path / "index.csv").open(newline="") as file:
        lines = {line["path"]: line for line in csv.DictReader(file)}
    assert len(lines) == 11_788
    checked = 0
    with tarfile.open(archive) as members:
        for number, member in enumerate(members):
            if number % 500 or not member.isfile():
                continue
            data = members.extractfile(member).read()
            line = lines[member.name.removeprefix("CUB_200_2011/")]
            assert line["sha256"] == hashlib.sha256(data).hexdigest()
            split = packed.split(line["split"])
            picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
            np.testing.assert_array_equal(split.images[int(line["row"])], picture)
            assert split.class_names[split.labels[int(line["row"])]] == line["class"]
            checked += 1
    assert checked >= 20


def test_cropped_pictures_are_not_cropped_again(real_data, tmp_path):
    """The archive has the boxes of the original pictures beside pictures that were cut to them."""
    archive = real_data("CUB_200_2011_84px_cropped.tar")
    splits, found = find_splits(find_dataset("cub"), archive, tmp_path, None, seed=0)
    assert found.crop == "before"
    assert "11788 of 11788 boxes" in found.remarks[0]
    pictures = [one for classes in splits.values() for each in classes.values() for one in each]
    assert len(pictures) == 11_788
    assert all(picture.box is None for picture in pictures)
