"""Features that are there already: what made them, and whether that is what is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from protorect._utils.arrays import load_arrays
from protorect._utils.manifest import differences
from protorect.embedding.store import FeatureStore
from protorect.errors import DataError


def is_store(out: Path) -> bool:
    """Whether features of this name are a folder; a feature file ends in .npz."""
    return out.suffix.lower() != ".npz"


def is_there(out: Path) -> bool:
    """Whether something has this name; an empty folder is nothing."""
    return out.exists() and not (is_store(out) and out.is_dir() and not any(out.iterdir()))


def check_same(out: Path, asked: dict[str, Any]) -> None:
    """Raise DataError if the features at `out` were made by something else than is asked for."""
    if is_store(out) and not out.is_dir():
        raise DataError(
            f"{out} is there already and is no folder of features. Remove it, or give another "
            "name; that of a feature file ends in .npz."
        )
    check_made_by(out, made_by(out), asked)


def check_made_by(path: Path, held: dict[str, Any], asked: dict[str, Any]) -> None:
    """Raise DataError that names what differs between what made `path` and what is asked for."""
    differing = differences(held, asked) if held else "whatever made it differs"
    if differing:
        raise DataError(
            f"{path} is there already and was made otherwise: {differing}. "
            "Remove it or give another name."
        )


def made_by(path: Path) -> dict[str, Any]:
    """What made features; empty where they do not say."""
    if path.is_dir():
        return FeatureStore.open(path).made_by
    manifest = load_arrays(path, required=(), optional=("manifest",)).get("manifest")
    try:
        held = json.loads(str(manifest))
    except (ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}
