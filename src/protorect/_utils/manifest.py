"""The manifest of a folder that protorect wrote."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from protorect._utils.documents import checked, read_json
from protorect._utils.files import read_errors
from protorect._utils.text import on_one_line
from protorect.errors import DataError, damaged

MANIFEST = "manifest.json"


class FolderFormat(NamedTuple):
    """A kind of folder with a manifest."""

    kind: str  # as messages name it
    format: str
    version: int
    if_missing: str  # sentence that says what to do if there is no manifest
    if_damaged: str  # sentence that says what to do if it cannot be read


def read_manifest(folder: Path, expected: FolderFormat, contents: Any = dict) -> dict[str, Any]:
    """The manifest of a folder, after checking its format and the description of its contents."""
    path = folder / MANIFEST
    with read_errors(folder):  # which this user may not be allowed to read
        exists = path.exists()
    if not exists:
        raise DataError(
            f"{folder} is not a {expected.kind}: it has no {MANIFEST}. {expected.if_missing}"
        )
    manifest = read_json(path, object, expected.if_damaged)
    if not isinstance(manifest, dict) or manifest.get("format") != expected.format:
        raise DataError(f"{path} is not the manifest of a {expected.kind} ({expected.format}).")
    if manifest.get("version") != expected.version:
        raise DataError(
            f"{folder} is of format version {on_one_line(manifest.get('version'))}; this "
            f"protorect reads version {expected.version}. {expected.if_damaged}"
        )
    try:
        return dict(checked(manifest, contents))
    except ValueError as error:
        raise damaged(path, str(error), expected.if_damaged) from error


def differences(stored: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Names of the entries of `expected` that are missing or different in `stored`; "" if none."""
    names = [name for name in expected if stored.get(name) != expected[name]]
    return f"{', '.join(names)} differ{'s' if len(names) == 1 else ''}" if names else ""
