"""Tensors and their configuration in one safetensors file; nothing is ever unpickled.

The configuration is JSON text in the file's metadata, beside the number of the format. What a
file claims to hold is checked by safetensors against its length before anything is allocated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from protorect._utils.files import written_whole
from protorect.errors import DataError

FORMAT = 1
_KEY = "protorect"
_TUPLE = "__tuple__"


def save_tensors(
    path: str | os.PathLike[str], tensors: dict[str, Tensor], config: dict[str, Any]
) -> None:
    """Write tensors and their configuration into one file, whole or not at all.

    Parameters
    ----------
    path
        The file, by custom `.safetensors`; one that exists is replaced.
    tensors
        By name, of any shape and device.
    config
        What is needed to use the tensors: strings, numbers, booleans, None, and lists, tuples
        and dicts of those. Its "kind" is what `load_tensors` can ask for.
    """
    metadata = {_KEY: json.dumps({"format": FORMAT, "config": _to_json(config)})}
    # safetensors takes only tensors that are contiguous and share no memory.
    own = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    with written_whole(path) as beside:
        try:
            save_file(own, beside, metadata)
        except SafetensorError as error:  # its word for a full disk, too
            raise DataError(f"cannot write {path}: {error}.") from error


def load_tensors(
    path: str | os.PathLike[str], kind: str | None = None
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote: the tensors, in memory of their own, and the configuration.

    Parameters
    ----------
    path
        The file.
    kind
        What config["kind"] must be; None for anything.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a file that protorect saved.")
    try:
        with safe_open(str(path), framework="pt") as file:
            config = _config(path, file.metadata())
            if kind is not None and config.get("kind") != kind:
                raise DataError(
                    f"{path} holds {config.get('kind', 'something else')!r}, not {kind!r}; "
                    "give a file of that kind."
                )
            names = file.keys()
            # Clones, as safetensors maps the file, and the file may change.
            return {name: file.get_tensor(name).clone() for name in names}, config
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}; check the name.") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from error
    except SafetensorError as error:
        raise DataError(
            f"{path} is not a safetensors file, or a damaged or incomplete one ({error}); "
            "save or copy it again."
        ) from error


def check_fits(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], where: str) -> None:
    """Raise DataError if names or shapes are not those wanted; the message says which differ."""
    differs = [
        *(f"{name} is missing" for name in wanted if name not in found),
        *(f"{name} is unknown" for name in found if name not in wanted),
        *(
            f"{name} is {tuple(found[name].shape)} instead of {tuple(wanted[name].shape)}"
            for name in wanted
            if name in found and found[name].shape != wanted[name].shape
        ),
    ]
    if differs:
        more = f" and {len(differs) - 3} more" if len(differs) > 3 else ""
        raise DataError(f"{where}: {', '.join(differs[:3])}{more}.")


def _config(path: Path, metadata: dict[str, str] | None) -> dict[str, Any]:
    """The configuration in the metadata of a file."""
    text = (metadata or {}).get(_KEY)
    if text is None:
        raise DataError(
            f"{path} is a safetensors file without a configuration of protorect; "
            "give a file that protorect saved."
        )
    damaged = DataError(f"{path} has a damaged configuration; save or copy it again.")
    try:
        held = json.loads(text)
        newer = held["format"] > FORMAT
        config = None if newer else _from_json(held["config"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise damaged from error
    if newer:
        raise DataError(
            f"{path} is in format {held['format']}, and this protorect reads up to {FORMAT}; "
            "install a newer protorect."
        )
    if not isinstance(config, dict):
        raise damaged
    return config


def _to_json(value: Any) -> Any:
    """The value in what JSON gives back unchanged."""
    if isinstance(value, np.generic):
        value = value.item()
    # By the exact type: a subclass, such as an enumeration, would not come back as itself.
    if type(value) in (str, int, float, bool, type(None)):
        return value
    if type(value) is list:
        return [_to_json(part) for part in value]
    if type(value) is tuple:
        return {_TUPLE: [_to_json(part) for part in value]}
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _to_json(part) for key, part in value.items()}
    raise DataError(
        f"cannot save {value!r} of type {type(value).__name__}; only strings, numbers, booleans, "
        "None and tuples of those can be saved."
    )


def _from_json(held: Any) -> Any:
    if isinstance(held, list):
        return [_from_json(part) for part in held]
    if not isinstance(held, dict):
        return held
    if _TUPLE in held:
        return tuple(_from_json(part) for part in held[_TUPLE])
    return {key: _from_json(part) for key, part in held.items()}
