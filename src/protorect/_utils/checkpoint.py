"""Tensors and their configuration in one safetensors file; nothing is ever unpickled.

The file's metadata holds the configuration and the version of this format as JSON text. Before
anything is allocated, safetensors checks the sizes that a file claims against its length.
"""

import json
import os
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from protorect._utils.documents import COUNT, checked, parse_json
from protorect._utils.files import atomic_write, open_file
from protorect._utils.text import on_one_line
from protorect.errors import DataError

FORMAT = 1
_KEY = "protorect"
_TUPLE = "__tuple__"  # JSON has no tuples, which labels may be
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)
_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, *_INTEGERS)


def save_tensors(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], config: Mapping[str, Any]
) -> None:
    """Write tensors and their configuration into one file, completely or not at all.

    The configuration may hold strings, numbers, booleans, None, and lists, tuples and dicts of
    those. An entry "kind" says what the file is for; `load_tensors` can require one.
    """
    metadata = {_KEY: json.dumps({"format": FORMAT, "config": _to_json(dict(config))})}
    # safetensors takes only tensors that are contiguous and share no memory.
    copies = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    # Not by `save_file`, which has a temporary file of its own.
    with atomic_write(path) as temporary:
        temporary.write_bytes(save(copies, metadata))


def load_tensors(
    path: str | os.PathLike[str], kind: str | None = None, expected: Any = dict
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a file's tensors, whose values are finite, and its configuration.

    DataError if its "kind" is not the given one, or if it is not as `expected` describes (see
    `_utils.documents`).
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"there is no file {path}; check the name.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; give a file that protorect saved.")
    try:
        # Opened first, because safetensors would wait for a pipe.
        with open_file(path), safe_open(str(path), framework="pt") as file:
            config = _config(path, file.metadata(), kind, expected)
            names = file.keys()
            # Copied, because safetensors maps the file into memory and the file may change.
            tensors = {name: file.get_tensor(name).clone() for name in names}
    except SafetensorError as error:
        raise DataError(
            f"{path} is not a safetensors file, or a damaged or incomplete one "
            f"({on_one_line(error)}); save or copy it again."
        ) from error
    for name, tensor in tensors.items():
        if tensor.dtype not in _DTYPES:
            raise DataError(f"{path}: {on_one_line(name)} is {tensor.dtype}, which is not used.")
        if not torch.isfinite(tensor).all():
            raise DataError(f"{path}: {on_one_line(name)} has infinite values or NaN.")
    return tensors, config


def check_fits(
    tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor], where: str, remedy: str = ""
) -> None:
    """Raise DataError "{where}: {problems}. {remedy}" if names or shapes differ from expected."""
    problems = [
        *(f"{name} is missing" for name in expected if name not in tensors),
        *(f"{name} is unknown" for name in tensors if name not in expected),
        *(
            f"{name} is {tuple(tensors[name].shape)} instead of {tuple(expected[name].shape)}"
            for name in expected
            if name in tensors and tensors[name].shape != expected[name].shape
        ),
        *(
            f"{name} is {tensors[name].dtype} instead of {tensor.dtype}"
            for name, tensor in expected.items()
            if tensor.is_floating_point() and name in tensors
            if not tensors[name].is_floating_point()
        ),
    ]
    if problems:
        more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise DataError(f"{where}: {on_one_line(', '.join(problems[:3]))}{more}. {remedy}".rstrip())


def _config(
    path: Path, metadata: dict[str, str] | None, kind: str | None, expected: Any
) -> dict[str, Any]:
    text = (metadata or {}).get(_KEY)
    if text is None:
        raise DataError(
            f"{path} is a safetensors file without a configuration of protorect; "
            "give a file that protorect saved."
        )
    config: dict[str, Any] = {}
    try:
        document = parse_json(text, {"format": COUNT}, _restore_tuple)
        if document["format"] <= FORMAT:
            config = checked(document, {"config": dict})["config"]
            if kind is None or config.get("kind") == kind:
                return dict(checked(config, expected))
    except ValueError as error:
        raise DataError(
            f"{path} has a damaged configuration: {error}; save or copy it again."
        ) from error
    if document["format"] > FORMAT:
        raise DataError(
            f"{path} is in format {document['format']}, and this protorect reads formats "
            f"up to {FORMAT}; install a newer protorect."
        )
    found = reprlib.repr(config.get("kind", "something else"))
    raise DataError(f"{path} holds {found}, not {kind!r}; give a file of that kind.")


def _to_json(value: Any) -> Any:
    """The value as JSON can hold it, with tuples as `_restore_tuple` expects them."""
    if isinstance(value, np.generic):
        value = value.item()
    # Only exact types: a subclass, such as an enumeration, would be loaded as its base class.
    if type(value) in (str, int, float, bool, type(None)):
        return value
    if type(value) is list:
        return [_to_json(item) for item in value]
    if type(value) is tuple:
        return {_TUPLE: [_to_json(item) for item in value]}
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: _to_json(item) for key, item in value.items()}
    raise DataError(
        f"cannot save {value!r} of type {type(value).__name__}; only strings, numbers, booleans, "
        "None, and lists, tuples and dicts of those can be saved."
    )


def _restore_tuple(value: dict[str, Any]) -> Any:
    return tuple(checked(value[_TUPLE], list)) if _TUPLE in value else value
