"""Class splits: published, by fractions, from files."""

import json

import pytest
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from protorect.datasets.catalogue import DATASETS
from protorect.datasets.splits import (
    ClassSplit,
    fraction_split,
    known_split,
    parse_fractions,
    split_from_file,
)
from protorect.errors import DataError, OptionError

SIZES = {
    "omniglot": (1028, 172, 423),
    "cub": (100, 50, 50),
    "mini-imagenet": (64, 16, 20),
    "tiered-imagenet": (351, 97, 160),
    "cifar-fs": (64, 16, 20),
    "meta-omniglot": (883, 81, 659),
    "meta-aircraft": (70, 15, 15),
    "meta-cu-birds": (140, 30, 30),
    "meta-dtd": (33, 7, 7),
    "meta-quickdraw": (241, 52, 52),
    "meta-fungi": (994, 200, 200),
    "meta-vgg-flower": (71, 15, 16),
    "meta-traffic-sign": (0, 0, 43),
    "meta-mscoco": (0, 40, 40),
}
NAMES = [f"class{number}" for number in range(10)]


def sizes(split):
    return len(split.train), len(split.val), len(split.test)


@pytest.mark.parametrize("name", SIZES)
def test_published_sizes(name):
    assert sizes(known_split(name)) == SIZES[name]
    assert len(known_split(name).names) == sum(SIZES[name])


def test_every_known_data_set_has_its_split():
    assert set(DATASETS) - set(SIZES) == {"folder", "meta-ilsvrc-2012"}
    assert known_split("folder") is None


def test_fractions_depend_on_the_seed_and_not_on_the_order():
    split = fraction_split(NAMES, (0.6, 0.2, 0.2), seed=3)
    assert sizes(split) == (6, 2, 2)
    assert split.names == set(NAMES)
    assert split == fraction_split(NAMES[::-1], (0.6, 0.2, 0.2), seed=3)
    assert split != fraction_split(NAMES, (0.6, 0.2, 0.2), seed=4)


@pytest.mark.parametrize(
    ("classes", "fractions", "expected"),
    [
        (3, (0.64, 0.16, 0.2), (1, 1, 1)),
        (4, (0.64, 0.16, 0.2), (2, 1, 1)),
        (10, (0, 0, 1), (0, 0, 10)),
        (10, (0.98, 0.01, 0.01), (8, 1, 1)),
        (7, (0.5, 0, 0.5), (4, 0, 3)),
    ],
)
def test_no_split_is_rounded_to_zero(classes, fractions, expected):
    assert sizes(fraction_split(NAMES[:classes], fractions)) == expected


def test_too_few_classes():
    with pytest.raises(DataError, match="2 classes .* cannot be divided into 3 splits"):
        fraction_split(NAMES[:2], (0.64, 0.16, 0.2))


@pytest.mark.parametrize("text", ["0.5,0.5", "a,b,c", "0.5,0.2,0.2", "1.5,-0.5,0", "nan,0.5,0.5"])
def test_bad_fractions(text):
    with pytest.raises(OptionError, match="--split"):
        parse_fractions(text)


def test_good_fractions():
    assert parse_fractions("0.64, 0.16,0.2") == (0.64, 0.16, 0.2)


def test_a_split_file(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"train": ["b", "a"], "test": ["c"]}))
    assert split_from_file(path) == ClassSplit(("a", "b"), (), ("c",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", r"is not a class split: it is \[\]; it must be an object"),
        ("{}", "only the keys"),
        ('{"training": ["a"]}', "only the keys"),
        ('{"train": "a"}', "train is 'a'; it must be a list. It should be"),
        ('{"train": [1]}', r"train\[0\] is 1; it must be text. It should be"),
        ('{"train": ["\\ud800"]}', r"train\[0\] is '.*'; it must be text"),
        ('{"train": []}', "names no class"),
        ('{"train": ["a"], "test": ["a"]}', "names a more than once"),
        ('{"train": ["a", "a"]}', "names a more than once"),
    ],
)
def test_bad_split_files(tmp_path, text, message):
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        split_from_file(path)


def test_a_missing_split_file(tmp_path):
    with pytest.raises(DataError, match="no split file"):
        split_from_file(tmp_path / "absent.json")


@damaged_files
@given(damages(json.dumps({"train": ["a", "b"], "val": ["c"], "test": ["d", "ä"]}).encode()))
def test_a_damaged_split_file_has_names_or_is_refused(tmp_path, content):
    def names(split):
        return all(isinstance(name, str) for name in split.names)

    read_or_refused(tmp_path / "s.json", content, split_from_file, names)
