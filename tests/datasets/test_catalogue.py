"""The catalogue of data sets."""

from importlib import import_module

import pytest

from protorect.datasets.catalogue import DATASETS, find_dataset
from protorect.datasets.layouts.class_folders import _plain, _spellings
from protorect.errors import OptionError


@pytest.mark.parametrize("known", DATASETS.values(), ids=DATASETS)
def test_every_entry_is_complete(known):
    assert all((known.expects, known.source, known.license))
    assert known.rotations in (1, 4)
    assert callable(import_module(f"protorect.datasets.layouts.{known.layout}").find_classes)
    assert find_dataset(known.name) is known


@pytest.mark.parametrize("name", [name for name in DATASETS if DATASETS[name].split])
def test_no_two_classes_share_a_folder_name(name):
    split = DATASETS[name].split
    assert len({_plain(one) for one in split.names}) == len(split.names)
    assert set(_spellings(split).values()) == split.names


def test_an_unknown_name():
    with pytest.raises(OptionError, match="Did you mean 'cub'"):
        find_dataset("cubs")
