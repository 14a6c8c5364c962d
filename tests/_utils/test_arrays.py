import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from protorect import DataError
from protorect._utils.arrays import create_array, load_arrays, save_arrays, write_rows


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
