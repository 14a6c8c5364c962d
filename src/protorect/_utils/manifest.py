"""JSON files, and the manifest of a folder that protorect wrote."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from protorect._utils.files import read_errors
from protorect.errors import DataError, damaged

MANIFEST = "manifest.json"
_MOST_BYTES = 256 * 2**20  # of a JSON file


class FolderFormat(NamedTuple):
    """A kind of folder with a manifest."""

    kind: str  # as messages name it
    format: str
    version: int
    if_missing: str  # sentence that says what to do if there is no manifest
    if_damaged: str  # sentence that says what to do if it cannot be read


def read_manifest(folder: Path, expected: FolderFormat) -> dict[str, Any]:
    """The manifest of a folder, after checking that it is of the expected format."""
    path = folder / MANIFEST
    if not path.exists():
        raise DataError(
            f"{folder} is not a {expected.kind}: it has no {MANIFEST}. {expected.if_missing}"
        )
    manifest = read_json(path, expected.if_damaged)
    if not isinstance(manifest, dict) or manifest.get("format") != expected.format:
        raise DataError(f"{path} is not the manifest of a {expected.kind} ({expected.format}).")
    if manifest.get("version") != expected.version:
        raise DataError(
            f"{folder} is of format version {manifest.get('version')}; this protorect reads "
            f"version {expected.version}. {expected.if_damaged}"
        )
    return manifest


def read_json(path: Path, if_damaged: str) -> Any:
    """The content of a JSON file; the DataError for a damaged one ends with `if_damaged`."""
    with read_errors(path):
        if not path.exists():
            raise damaged(path, "the file is missing", if_damaged)
        length = path.stat().st_size
        if length > _MOST_BYTES:
            raise damaged(path, f"{length:,} bytes are too many", if_damaged)
        content = path.read_bytes()
    try:
        return json.loads(content)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise damaged(path, "it is not JSON", if_damaged) from error


def differences(stored: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Names of the entries of `expected` that `stored` lacks or has otherwise; "" if none."""
    names = [name for name in expected if stored.get(name) != expected[name]]
    return f"{', '.join(names)} differ{'s' if len(names) == 1 else ''}" if names else ""
