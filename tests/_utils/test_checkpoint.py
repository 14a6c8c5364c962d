"""Files of tensors with their configuration: loaded as saved, or refused with the reason."""

import json
import os
import random
import struct
import subprocess
import sys
from enum import StrEnum

import numpy as np
import pytest
import torch
from hypothesis import given
from safetensors.torch import save, save_file

from helpers.damage import damaged_files, damages, read_or_refused
from protorect._utils.checkpoint import FORMAT, check_fits, load_tensors, save_tensors
from protorect.errors import DataError

TENSORS = {"weight": torch.arange(12.0).reshape(3, 4), "steps": torch.tensor(7)}
CONFIG = {"kind": "backbone", "name": "conv64", "width": 64, "sizes": (1, (2, None)), "on": True}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    save_tensors(path, TENSORS, CONFIG)
    return path


def safetensors_file(tmp_path, header, data=b"", length=None):
    """A file with this header, in the safetensors layout."""
    text = json.dumps(header).encode()
    path = tmp_path / "written.safetensors"
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def with_metadata(tmp_path, metadata):
    path = tmp_path / "other.safetensors"
    save_file(TENSORS, path, metadata)
    return path


def refusal(path, **options):
    """The message with which a file is refused; it names the file."""
    with pytest.raises(DataError) as caught:
        load_tensors(path, **options)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_what_is_saved_is_loaded(saved):
    tensors, config = load_tensors(saved)
    assert config == CONFIG
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in tensors.items():
        torch.testing.assert_close(tensor, TENSORS[name], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.bool])
def test_types_and_bits_are_preserved(tmp_path, dtype):
    saved_tensor = torch.tensor([0.1, -0.0, 3e4]).to(dtype)
    save_tensors(tmp_path / "t", {"t": saved_tensor}, {})
    tensors, _ = load_tensors(tmp_path / "t")
    assert tensors["t"].dtype == dtype
    assert torch.equal(tensors["t"].view(torch.uint8), saved_tensor.view(torch.uint8))


def test_tensors_may_share_memory_be_transposed_and_require_gradients(tmp_path):
    whole = torch.randn(4, 5, requires_grad=True)
    save_tensors(tmp_path / "t", {"whole": whole, "transposed": whole.T, "again": whole}, {})
    tensors, _ = load_tensors(tmp_path / "t")
    assert torch.equal(tensors["again"], whole)
    assert torch.equal(tensors["transposed"], whole.T)


def test_loaded_tensors_do_not_depend_on_the_file(saved):
    tensors, _ = load_tensors(saved)
    saved.write_bytes(b"\xff" * saved.stat().st_size)  # in place: a mapping would see it
    assert torch.equal(tensors["weight"], TENSORS["weight"])


def test_numbers_of_numpy_are_saved_as_numbers(tmp_path):
    config = {"z": np.int64(4), "parts": [np.float64(0.1), (np.bool_(True),)]}
    save_tensors(tmp_path / "t", {}, config)
    assert load_tensors(tmp_path / "t")[1] == {"z": 4, "parts": [0.1, (True,)]}


class Color(StrEnum):
    RED = "red"


@pytest.mark.parametrize("value", [Color.RED, b"red", {1, 2}, {1: 2}, object(), 1j])
def test_a_value_that_json_would_change_is_not_saved(tmp_path, value):
    with pytest.raises(DataError, match=f"cannot save .* of type {type(value).__name__}"):
        save_tensors(tmp_path / "t", {}, {"value": (value,)})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(path, data):
        with open(path, "wb") as file:
            file.write(data[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(DataError, match=r"cannot write .*model.safetensors: No space left"):
        save_tensors(saved, TENSORS, CONFIG)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


FILL_THE_DISK = """
import resource, signal, sys, torch
from protorect._utils.checkpoint import save_tensors
from protorect.errors import DataError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    save_tensors(sys.argv[1], {"t": torch.zeros(100_000)}, {})
except DataError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_full_disk_is_reported_in_one_sentence(tmp_path):
    path = tmp_path / "t.safetensors"
    command = [sys.executable, "-c", FILL_THE_DISK, str(path)]
    message = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert message.startswith(f"cannot write {path}")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_and_a_folder(tmp_path):
    assert "no file" in refusal(tmp_path / "missing.safetensors")
    assert "is a folder" in refusal(tmp_path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n" * 9, b"PK\x03\x04" * 9, b"\x80\x02}q\x00."])
def test_a_file_of_another_format(tmp_path, content):
    path = tmp_path / "model.pt"
    path.write_bytes(content)
    assert "not a safetensors file" in refusal(path)


def test_control_characters_of_a_damaged_file_are_shown_as_escapes(tmp_path):
    header = '{"a": {"dtype": "\x9b2J", "shape": [1], "data_offsets": [0, 4]}}'.encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    assert "`\\x9b2J`" in refusal(path)


@pytest.mark.parametrize("end", [4, 60, -1])
def test_an_incomplete_file(saved, end):
    saved.write_bytes(saved.read_bytes()[:end])
    assert "incomplete" in refusal(saved)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_file_of_another_program(tmp_path, metadata):
    assert "without a configuration of protorect" in refusal(with_metadata(tmp_path, metadata))


DEEP = '{"format": 1, "config": ' + "[" * 100_000 + "]" * 100_000 + "}"
BAD_TUPLE = '{"format": 1, "config": {"a": {"__tuple__": 3}}}'


@pytest.mark.parametrize(
    "text", ["{", "3", "{}", '{"format": 1}', '{"format": 1, "config": 3}', DEEP, BAD_TUPLE]
)
def test_a_damaged_configuration(tmp_path, text):
    assert "damaged configuration" in refusal(with_metadata(tmp_path, {"protorect": text}))


def test_a_newer_format_asks_for_a_newer_protorect(tmp_path):
    text = json.dumps({"format": FORMAT + 1, "settings": {}})
    message = refusal(with_metadata(tmp_path, {"protorect": text}))
    assert f"format {FORMAT + 1}" in message
    assert "install a newer protorect" in message


def test_another_kind_is_refused(saved):
    assert load_tensors(saved, kind="backbone")[1]["kind"] == "backbone"
    message = refusal(saved, kind="estimator")
    assert "'backbone'" in message
    assert "'estimator'" in message


HUGE = {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}


@pytest.mark.parametrize(
    ("header", "length"),
    [
        ({"t": HUGE}, None),
        ({"t": {**HUGE, "data_offsets": [0, 16]}}, None),
        ({"t": {**HUGE, "shape": [2**40, 2**40]}}, None),
        ({}, 2**62),
        ({}, 99_000_000),
    ],
)
def test_sizes_are_checked_before_allocation(tmp_path, header, length):
    # 4 TB cannot be allocated here, so a refusal as damaged shows that it was not tried.
    assert "damaged" in refusal(safetensors_file(tmp_path, header, b"\0" * 16, length))


def test_a_file_with_flipped_bytes_is_read_or_refused(saved):
    good, rng = saved.read_bytes(), random.Random(0)
    refused = 0
    for _ in range(500):
        damaged = bytearray(good)
        damaged[rng.randrange(len(good) - 48)] = rng.randrange(256)
        saved.write_bytes(damaged)
        try:
            load_tensors(saved)
        except DataError:
            refused += 1
    assert refused > 100


SIZES = {"F8_E4M3": 1, "F8_E5M2": 1, "C64": 8, "U16": 2, "U32": 4, "U64": 8}


@pytest.mark.parametrize("dtype", SIZES)
def test_types_that_are_not_computed_with_are_refused(tmp_path, dtype):
    size = 2 * SIZES[dtype]
    metadata = {"protorect": json.dumps({"format": 1, "config": {}})}
    header = {
        "__metadata__": metadata,
        "t": {"dtype": dtype, "shape": [2], "data_offsets": [0, size]},
    }
    assert "t is torch." in refusal(safetensors_file(tmp_path, header, b"\0" * size))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_values_that_are_not_finite_are_refused(tmp_path, dtype, value):
    path = tmp_path / "t.safetensors"
    save_tensors(path, {"a": torch.zeros(3), "b": torch.tensor([0.0, value], dtype=dtype)}, {})
    assert "b has infinite values or NaN" in refusal(path)


def test_the_configuration_is_as_expected(saved):
    assert load_tensors(saved, expected={"width": range(65)})[1] == CONFIG
    assert "width is 64; it must be a whole number in 0 .. 9" in refusal(
        saved, expected={"width": range(10)}
    )


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refusal(tmp_path / "pipe")


def test_weights_are_floating_point():
    expected = {"weight": torch.zeros(2), "steps": torch.tensor(0)}
    check_fits({"weight": torch.zeros(2).half(), "steps": torch.tensor(1)}, expected, "w")
    with pytest.raises(DataError, match=r"w: weight is torch.int64 instead of torch.float32"):
        check_fits({"weight": torch.zeros(2).long(), "steps": torch.tensor(1)}, expected, "w")


METADATA = {"protorect": json.dumps({"format": FORMAT, "config": {"kind": "a", "size": [1, 2.5]}})}


@damaged_files
@given(damages(save({"w": torch.arange(4.0)}, METADATA)))
def test_a_damaged_file_has_finite_values_or_is_refused(tmp_path, content):
    def finite(loaded):
        return all(tensor.isfinite().all() for tensor in loaded[0].values())

    read_or_refused(tmp_path / "t", content, lambda path: load_tensors(path, "a"), finite)
