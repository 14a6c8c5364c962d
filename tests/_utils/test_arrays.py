import io
import os
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from protorect import DataError
from protorect._utils.arrays import create_array, load_arrays, map_array, save_arrays, write_rows


class Flag:
    """Sets a flag when it is unpickled."""

    unpickled = False

    def __reduce__(self):
        return (setattr, (Flag, "unpickled", True))


def npz(path, **members):
    """A .npz whose members are given as bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def header(shape, descr="<f4"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


def test_round_trip(tmp_path):
    path = tmp_path / "a.npz"
    save_arrays(path, first=np.arange(6).reshape(2, 3), second=np.array(["a", "bc"]))
    arrays = load_arrays(path, required=("first",), optional=("second", "third"))
    assert (arrays["first"] == [[0, 1, 2], [3, 4, 5]]).all()
    assert arrays["second"].tolist() == ["a", "bc"]
    assert set(arrays) == {"first", "second"}


def test_compressed_and_fortran_ordered(tmp_path):
    array = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    np.savez_compressed(tmp_path / "a.npz", x=array)
    assert (load_arrays(tmp_path / "a.npz", ("x",))["x"] == array).all()


def test_pickled_objects_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([Flag()], dtype=object))
    with pytest.raises(DataError, match="pickled objects, which are never read"):
        load_arrays(tmp_path / "a.npz", ("x",))
    raw = npz(tmp_path / "b.npz", x=pickle.dumps(Flag()))
    with pytest.raises(DataError, match="cannot be read"):
        load_arrays(raw, ("x",))
    assert not Flag.unpickled


def test_a_shape_without_its_data_allocates_nothing(tmp_path):
    path = npz(tmp_path / "a.npz", x=header((10**9, 10**6)) + b"\0" * 64)
    with pytest.raises(DataError, match="has less data than its shape"):
        load_arrays(path, ("x",))


def test_an_array_larger_than_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("protorect._utils.arrays.physical_memory", lambda: 100.0)
    save_arrays(tmp_path / "a.npz", x=np.zeros(1000))
    with pytest.raises(DataError, match=r"shape \(1000,\) does not fit into memory"):
        load_arrays(tmp_path / "a.npz", ("x",))


def test_a_missing_array_names_what_there_is(tmp_path):
    save_arrays(tmp_path / "a.npz", y=np.zeros(1))
    with pytest.raises(DataError, match="has no array x; it holds y"):
        load_arrays(tmp_path / "a.npz", ("x",))


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path):
    save_arrays(tmp_path / "whole.npz", x=np.random.default_rng(0).random(500))
    whole = (tmp_path / "whole.npz").read_bytes()
    for end in range(0, len(whole), 97):
        (tmp_path / "a.npz").write_bytes(whole[:end])
        with pytest.raises(DataError):
            load_arrays(tmp_path / "a.npz", ("x",))


def test_flipped_bytes_are_an_error_or_do_not_matter(tmp_path):
    save_arrays(tmp_path / "whole.npz", x=np.arange(50))
    whole = (tmp_path / "whole.npz").read_bytes()
    for place in range(0, len(whole), 3):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        (tmp_path / "a.npz").write_bytes(bytes(broken))
        try:
            array = load_arrays(tmp_path / "a.npz", ("x",))["x"]
        except DataError:
            continue
        assert (array == np.arange(50)).all()


@pytest.mark.parametrize("name", ["nothing.npz", "folder", "text.npz", "array.npy"])
def test_a_file_of_another_kind_is_named(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.npz").write_text("features")
    np.save(tmp_path / "array.npy", np.zeros(3))
    with pytest.raises(DataError, match=name):
        load_arrays(tmp_path / name, ("x",))


def test_an_array_in_a_folder_of_the_archive_has_another_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("data/x.npy", header((1,)) + b"\0" * 4)
    with pytest.raises(DataError, match="has no array x; it holds data/x"):
        load_arrays(tmp_path / "a.npz", ("x",))


def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "p.npz")
    with pytest.raises(DataError, match="not a regular file"):
        load_arrays(tmp_path / "p.npz", ("x",))


def test_a_created_array_is_a_npy_file_that_can_be_written(tmp_path):
    array = create_array(tmp_path / "a.npy", "<f4", (3, 2))
    assert array.tolist() == [[0, 0]] * 3
    array[1] = 5
    array.flush()
    assert np.load(tmp_path / "a.npy").tolist() == [[0, 0], [5, 5], [0, 0]]


def test_rows_are_written_in_any_order(tmp_path):
    expected = np.arange(30, dtype=np.uint8).reshape(5, 3, 2)
    create_array(tmp_path / "a.npy", "uint8", expected.shape)
    for start, stop in ((3, 5), (0, 3)):
        write_rows(tmp_path / "a.npy", start, expected[start:stop])
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), expected)


def raw_header(text, version=b"\x01\x00", length=None):
    """The start of a .npy file with this text as its header."""
    size = (2 if version[0] == 1 else 4, "little")
    length = len(text) if length is None else length
    return b"\x93NUMPY" + version + length.to_bytes(*size) + text


def described(shape, descr="'<f4'", order="False"):
    return raw_header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}".encode())


DATA = b"\0" * 64
BAD_ARRAYS = {
    "empty": b"",
    "negative": described("(-1,)") + DATA,
    "two negatives": described("(-2, -3)") + DATA,
    "not a shape": described("3") + DATA,
    "fraction": described("(1.5,)") + DATA,
    "huge shape of nothing": described(f"(0, {10**30})") + DATA,
    "more than fits": described(f"({2**62}, {2**62})") + DATA,
    "many dimensions": described("(" + "1," * 200 + ")") + DATA,
    "records": described("(2,)", "[('a', '<f4')]") + DATA,
    "subarrays": described("(2,)", "('<f4', (2,))") + DATA,
    "void": described("(2,)", "'|V8'") + DATA,
    "dates": described("(2,)", "'<M8[s]'") + DATA,
    "text of no length": described(f"({10**15},)", "'<U0'") + DATA,
    "objects": described("(2,)", "'|O'") + DATA,
    "unknown type": described("(2,)", "'<q9'") + DATA,
    "not Unicode": described("(1,)", "'<U2'") + b"\xff\xff\xff\xff" * 2,
    "surrogate": described("(1,)", "'>U2'") + b"\0\0\xd8\0" * 2,
    "long header": raw_header(b"{" + b" " * 60_000 + b"}") + DATA,
    "longer header": raw_header(b" " * 2**20, b"\x02\x00") + DATA,
    "header beyond the file": raw_header(b"{}", b"\x02\x00", 2**32 - 1) + DATA,
    "nested header": raw_header(b"(" * 5000) + DATA,
    "another version": raw_header(b"{}", b"\x09\x00") + DATA,
}


@pytest.mark.parametrize("content", BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_a_damaged_array_is_refused(tmp_path, content):
    path = npz(tmp_path / "a.npz", x=content)
    with pytest.raises(DataError, match=r"a\.npz: x\.npy cannot be read: .*\.$") as caught:
        load_arrays(path, ("x",))
    assert len(str(caught.value)) < 700
    assert "\n" not in str(caught.value)
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npy is damaged: .* Mend it\.$"):
        map_array(tmp_path / "a.npy", "float32", (16,), "Mend it.")


def test_a_header_of_python_2_is_read_without_a_warning(tmp_path):
    path = npz(tmp_path / "a.npz", x=described("(16L,)") + DATA)
    assert load_arrays(path, ("x",))["x"].shape == (16,)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3, 4), (0, 4)])
def test_a_mapped_array_is_as_saved(tmp_path, order, shape):
    array = np.asarray(np.random.default_rng(0).random(shape, np.float32), order=order)
    np.save(tmp_path / "a.npy", array)
    mapped = map_array(tmp_path / "a.npy", "float32", shape, "Mend it.")
    assert isinstance(mapped, np.memmap)
    assert not mapped.flags.writeable
    np.testing.assert_array_equal(mapped, array)


def test_a_mapped_array_is_a_regular_file_of_the_right_length(tmp_path):
    path = tmp_path / "a.npy"
    with pytest.raises(DataError, match=r"a\.npy is damaged: the file is missing. Mend it."):
        map_array(path, "float32", (16,), "Mend it.")
    for content, reason in ((DATA + b"x", "longer"), (DATA[:-1], "shorter")):
        path.write_bytes(described("(16,)") + content)
        with pytest.raises(DataError, match=f"is damaged: it is {reason} than its array"):
            map_array(path, "float32", (16,), "Mend it.")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match=r"cannot read .*a\.npy: it is not a regular file"):
        map_array(path, "float32", (16,), "Mend it.")


def test_a_member_that_claims_more_than_it_can_hold_allocates_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "protorect._utils.arrays.npy.read_array", lambda *_, **__: pytest.fail("read")
    )
    path = npz(tmp_path / "a.npz", x=described(f"({2**28},)"))
    content = bytearray(path.read_bytes())
    directory = content.index(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (2**31).to_bytes(4, "little")  # its real length
    path.write_bytes(content)
    with pytest.raises(DataError, match="x.npy cannot be read: it has less data than its shape"):
        load_arrays(path, ("x",))


def test_a_member_with_another_compression_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", described("(16,)") + DATA)
    with pytest.raises(DataError, match="x.npy cannot be read: it is compressed in another way"):
        load_arrays(tmp_path / "a.npz", ("x",))


def saved(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@damaged_files
@given(damages(saved(x=np.arange(6.0).reshape(2, 3), names=np.array(["a", "bc"]))))
def test_a_damaged_file_has_plain_arrays_or_is_refused(tmp_path, content):
    def plain(arrays):
        return all(array.dtype.kind in "biufcSU" and array.tolist() for array in arrays.values())

    read_or_refused(tmp_path / "a.npz", content, lambda p: load_arrays(p, ("x", "names")), plain)


@damaged_files
@given(damages(described("(4, 4)") + DATA))
def test_a_damaged_array_fits_or_is_refused(tmp_path, content):
    def read(path):
        return map_array(path, "float32", (4, 4), "Mend it.")

    read_or_refused(tmp_path / "a.npy", content, read, lambda array: array.shape == (4, 4))


def test_zeros_that_unpack_to_hundreds_of_megabytes_are_refused(tmp_path):
    """Deflate makes a thousandth of them; nothing is allocated."""
    shape = {"descr": "<f4", "fortran_order": False, "shape": (70_000, 1024)}
    with (
        zipfile.ZipFile(tmp_path / "f.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("features.npy", "w") as file,
    ):
        np.lib.format.write_array_header_1_0(file, shape)
        for _ in range(70):
            file.write(bytes(4 * 1024 * 1000))
    with pytest.raises(DataError, match="unpacks to more than 100 times its size"):
        load_arrays(tmp_path / "f.npz", ("features",))
