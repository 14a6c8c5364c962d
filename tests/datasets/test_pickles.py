"""Reading pickles without executing anything in them."""

import operator
import os
import pickle

import numpy as np
import pytest
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from protorect.datasets.pickles import load_pickled_dict, load_plain_pickle
from protorect.errors import DataError

PLAIN = {
    "image_data": np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3),
    b"class_dict": {"n01": [0, 1], "n02": []},
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big-endian": np.arange(3, dtype=">i4"),
    "numbers": [1, -(2**70), 2.5, None, True, (1, 2)],
}


class Calls:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def written(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_and_arrays_are_read(tmp_path, protocol):
    loaded = load_plain_pickle(written(tmp_path / "p", pickle.dumps(PLAIN, protocol)))
    assert list(loaded) == list(PLAIN)
    for key, value in PLAIN.items():
        same = np.array_equal if isinstance(value, np.ndarray) else operator.eq
        assert same(loaded[key], value)


def test_module_names_of_older_numpy(tmp_path):
    data = pickle.dumps(PLAIN["image_data"], 2).replace(b"numpy._core", b"numpy.core")
    loaded = load_plain_pickle(written(tmp_path / "p", data))
    np.testing.assert_array_equal(loaded, PLAIN["image_data"])


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_os_system_is_not_called(tmp_path, protocol):
    mark = tmp_path / "mark"
    data = pickle.dumps({"image_data": Calls(os.system, f"touch {mark}")}, protocol)
    with pytest.raises(DataError, match=r"asks for posix\.system, which is never run"):
        load_plain_pickle(written(tmp_path / "p", data))
    assert not mark.exists()
    pickle.loads(data)  # it would have run
    assert mark.exists()


@pytest.mark.parametrize(
    "value",
    [
        eval,
        np.load,
        Calls(np.ndarray, (10**6,)),
        np.array([{}], dtype=object),
        np.array([(1, 2)], dtype=[("a", "i4"), ("b", "i4")]),
        np.float64(1),
        Calls(np.dtype, "O"),
        {1, 2}.__class__,
    ],
    ids=["eval", "np.load", "ndarray", "objects", "records", "scalar", "dtype", "set"],
)
def test_other_objects_are_an_error(tmp_path, value):
    path = written(tmp_path / "p", pickle.dumps(value))
    with pytest.raises(DataError, match="never run|not a whole pickle"):
        load_plain_pickle(path)


@pytest.mark.parametrize("flags", [1, 2, 63, 255])
def test_a_forged_type_cannot_claim_that_numbers_are_pointers(tmp_path, flags):
    """numpy itself takes these flags from a pickle and then follows the numbers as pointers."""
    dtype = b"cnumpy\ndtype\n(VV\nI00\nI01\ntR(I3\nV|\nNNNI-1\nI-1\nI%d\ntb" % flags
    dtype = dtype.replace(b"(VV", b"(Vu1")
    head = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntC\x01btR"
    data = head + b"(I1\n(I8\nt" + dtype + b"I00\nC\x08\x01\x02\x03\x04\x05\x06\x07\x08tb."
    loaded = load_plain_pickle(written(tmp_path / "p", data))
    assert loaded.dtype == np.uint8
    assert loaded.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_pickle_cannot_change_the_unpickler(tmp_path):
    # GLOBAL numpy.dtype, then BUILD with a state: this would set attributes on the replacement.
    data = b"cnumpy\ndtype\n(dVx\nVy\nsb."
    with pytest.raises(DataError, match="not a whole pickle"):
        load_plain_pickle(written(tmp_path / "p", data))


@pytest.mark.parametrize(
    "data",
    [
        b"]r\xff\xff\xff\x7f.",  # a list to be remembered under number 2**31 - 1
        b"\x80\x05\x96\xff\xff\xff\xff\x0f\0\0\0ab.",  # 64 GiB of bytes, of which two follow
    ],
    ids=["memo", "length"],
)
def test_forged_lengths_allocate_nothing(tmp_path, data, monkeypatch):
    name = "protorect.datasets.pickles._PlainUnpickler"
    monkeypatch.setattr(name, lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(DataError, match="not a whole pickle"):
        load_plain_pickle(written(tmp_path / "p", data))


@pytest.mark.parametrize("pair", [lambda x: [x, x], lambda x: (x, x), lambda x: {0: x, 1: x}])
def test_shared_values_are_converted_once(tmp_path, pair):
    value = array = np.arange(3)
    for _ in range(100):  # 2**100 values if each reference were followed
        value = pair(value)
    loaded = load_plain_pickle(written(tmp_path / "p", pickle.dumps(value)))
    for _ in range(100):
        assert loaded[0] is loaded[1]
        loaded = loaded[0]
    np.testing.assert_array_equal(loaded, array)


def test_a_list_that_holds_itself(tmp_path):
    value = []
    value.append(value)
    with pytest.raises(DataError, match="not a whole pickle"):
        load_plain_pickle(written(tmp_path / "p", pickle.dumps(value)))


def test_an_array_with_too_few_bytes(tmp_path):
    data = pickle.dumps(np.zeros(300, np.uint8), 2).replace(b"M,\x01", b"M,\x02")
    with pytest.raises(DataError, match="not a whole pickle"):
        load_plain_pickle(written(tmp_path / "p", data))


@pytest.mark.parametrize(
    "data", [b"", b"no pickle", pickle.dumps(PLAIN)[:-20]], ids=["empty", "text", "truncated"]
)
def test_damaged_and_missing_files(tmp_path, data):
    with pytest.raises(DataError, match="not a whole pickle"):
        load_plain_pickle(written(tmp_path / "p", data))
    with pytest.raises(DataError, match="cannot read .*No such file"):
        load_plain_pickle(tmp_path / "absent")


NESTED = b"K\x01" + b"2\x86" * 100  # a number; DUP and TUPLE2 make a pair of what is there


@pytest.mark.parametrize(
    "data",
    [
        b"}" + NESTED + b"K\x01s.",
        b"}(" + NESTED + b"K\x01u.",
        b"(" + NESTED + b"K\x01d.",
        b"\x80\x04\x8f(" + NESTED + b"\x90.",
        b"\x80\x04(" + NESTED + b"\x91.",
        b"cnumpy\ndtype\n" + NESTED + b"\x85R.",
    ],
    ids=["SETITEM", "SETITEMS", "DICT", "ADDITEMS", "FROZENSET", "dtype"],
)
def test_nested_tuples_are_never_hashed_nor_shown(tmp_path, data):
    """Python hashes a tuple anew each time: 2**100 values here."""
    with pytest.raises(DataError, match="not a whole pickle"):
        load_plain_pickle(written(tmp_path / "p", data))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("key", [(1, 2), frozenset([1]), 2**65])
def test_only_text_and_numbers_are_keys(tmp_path, protocol, key):
    data = pickle.dumps({"a": {key: 1}}, protocol)
    with pytest.raises(DataError, match="not a whole pickle|never run"):
        load_plain_pickle(written(tmp_path / "p", data))


@pytest.mark.parametrize("document", [[1], {1: 2}, {None: 2}, {2.5: 1}])
def test_a_dict_with_text_as_keys(tmp_path, document):
    with pytest.raises(DataError, match=r"p should (hold a dict|name things by text)"):
        load_pickled_dict(written(tmp_path / "p", pickle.dumps(document)))


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "p")
    with pytest.raises(DataError, match="cannot read .*p: it is not a regular file"):
        load_plain_pickle(tmp_path / "p")


@damaged_files
@given(damages(pickle.dumps(PLAIN, 2)))
def test_a_damaged_pickle_is_plain_or_refused(tmp_path, content):
    plain = (dict, list, tuple, str, bytes, bytearray, int, float, bool, type(None), np.ndarray)
    read_or_refused(
        tmp_path / "p", content, load_plain_pickle, lambda value: isinstance(value, plain)
    )
