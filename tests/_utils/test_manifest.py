"""Manifests of folders, and the differences of two descriptions."""

import json

import pytest

from protorect import DataError
from protorect._utils.manifest import MANIFEST, FolderFormat, differences, read_manifest

EXPECTED = FolderFormat("shoe box", "boxes", 2, "Buy one.", "Buy another.")


def with_manifest(folder, document):
    (folder / MANIFEST).write_text(json.dumps(document))
    return folder


def test_a_manifest_of_the_format_is_read(tmp_path):
    document = {"format": "boxes", "version": 2, "size": 41}
    assert read_manifest(with_manifest(tmp_path, document), EXPECTED) == document


def test_a_folder_without_a_manifest(tmp_path):
    with pytest.raises(DataError, match=r"is not a shoe box: it has no manifest.json. Buy one\."):
        read_manifest(tmp_path, EXPECTED)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], r"is not the manifest of a shoe box \(boxes\)"),
        ({"format": "bags", "version": 2}, r"is not the manifest of a shoe box \(boxes\)"),
        ({"format": "boxes", "version": 3}, "version 3; this protorect reads version 2. Buy ano"),
    ],
)
def test_a_manifest_of_another_format(tmp_path, document, message):
    with pytest.raises(DataError, match=message):
        read_manifest(with_manifest(tmp_path, document), EXPECTED)


def test_the_contents_are_checked(tmp_path):
    document = {"format": "boxes", "version": 2, "size": -1}
    with pytest.raises(DataError, match="manifest.json is damaged: size is -1; .* Buy another."):
        read_manifest(with_manifest(tmp_path, document), EXPECTED, {"size": range(50)})


def test_differences_name_what_is_missing_or_changed():
    stored = {"weights": "a", "size": 3, "extra": 1}
    assert differences(stored, {"weights": "a", "size": 3}) == ""
    assert differences(stored, {"weights": "b", "size": 3}) == "weights differs"
    assert differences(stored, {"weights": "b", "split": "test"}) == "weights, split differ"
