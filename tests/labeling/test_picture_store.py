"""Features of a project on disk, and their principal components."""

import numpy as np
import pytest
import torch

from protorect.errors import DataError
from protorect.labeling.picture_rows import PictureRows
from protorect.labeling.picture_store import RECORD, PictureStore, Stored


def stored(number, reason=""):
    content = bytes([number + 1]) * 32
    return Stored(number, content, 10 + number, 20, 300, 400, reason)


@pytest.fixture
def store(tmp_path):
    """Pictures 0 to 5, of which 2 cannot be read, and 1 was read twice."""
    store = PictureStore(tmp_path / "features")
    store.use_network("a")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 40)).astype(np.float32)
    store.append([stored(0), stored(1), stored(2, "truncated")], rows[:2])
    store.append([stored(3), stored(4), stored(5)], rows[2:5])
    store.append([stored(1)], rows[5:])
    return store


def test_what_was_written_is_read(store):
    again = PictureStore(store.folder)
    assert again.index.tobytes() == store.index.tobytes()
    assert (again.dim, again.network, len(again)) == (40, "a", 7)
    assert again.index["reason"].tolist() == [b"", b"", b"truncated", b"", b"", b"", b""]
    positions = np.array([6, 0])
    assert np.array_equal(again.features(positions), store.features(positions))
    assert np.array_equal(np.concatenate(list(again.blocks(7, 3))), store.features(np.arange(7)))


@pytest.mark.parametrize("cut", [1, RECORD.itemsize - 1])
def test_a_part_of_a_record_is_ignored_and_overwritten(store, cut):
    index = store.folder / "index.bin"
    index.write_bytes(index.read_bytes()[:-cut])
    again = PictureStore(store.folder)
    assert len(again) == 6
    again.append([stored(1)], np.ones((1, 40), np.float32))
    assert np.array_equal(PictureStore(store.folder).features(np.array([6])), np.ones((1, 40)))


def test_features_of_another_network_are_removed(store):
    again = PictureStore(store.folder)
    assert not again.use_network("a")
    assert again.use_network("b")
    assert len(again) == len(PictureStore(store.folder)) == 0


def test_the_last_record_of_a_picture_counts_and_unreadable_ones_have_no_row(store):
    rows = PictureRows.of(store, len(store))
    assert rows.ids.tolist() == [0, 1, 3, 4, 5]
    assert rows.positions.tolist() == [0, 6, 3, 4, 5]
    assert rows.places(np.array([1, 2, 5, 99])).tolist() == [1, -1, 4, -1]


def test_principal_components_keep_inner_products(store):
    rows = PictureRows.of(store, len(store))
    features = torch.from_numpy(store.features(rows.positions))
    unit = torch.nn.functional.normalize(features, dim=1)
    assert torch.allclose(rows.rows @ rows.rows.T, unit @ unit.T, atol=1e-4)


def test_saved_rows_are_used_for_the_same_store_only(store, tmp_path):
    rows = PictureRows.of(store, len(store))
    rows.save(tmp_path / "rows.npz", store)
    loaded = PictureRows.load(tmp_path / "rows.npz", store)
    assert torch.equal(loaded.rows, rows.rows)
    store.append([stored(3)], np.ones((1, 40), np.float32))
    assert PictureRows.load(tmp_path / "rows.npz", store) is None
    (tmp_path / "rows.npz").write_bytes(b"damaged")
    assert PictureRows.load(tmp_path / "rows.npz", store) is None


def test_values_that_are_not_finite_are_named_or_computed_again(store, tmp_path):
    rows = PictureRows.of(store, len(store))
    with torch.inference_mode():
        rows.rows[1, 0] = torch.nan
    rows.save(tmp_path / "rows.npz", store)
    assert PictureRows.load(tmp_path / "rows.npz", store) is None
    store.append([stored(3)], np.full((1, 40), np.inf, np.float32))
    with pytest.raises(DataError, match=r"features.f32 .*not finite.*[Rr]emove this folder"):
        PictureRows.of(store, len(store))


def test_features_that_are_missing_or_cut_off_are_reported(store):
    path = store.folder / "features.f32"
    path.write_bytes(path.read_bytes()[:-1])
    for read in (lambda: list(store.blocks(7)), lambda: store.features(np.array([6]))):
        with pytest.raises(DataError, match=r"features.f32 is damaged: it has become shorter"):
            read()
    path.unlink()
    with pytest.raises(DataError, match=r"cannot read .*features.f32: No such file"):
        next(store.blocks(7))


def test_a_later_block_without_a_readable_picture(tmp_path):
    store = PictureStore(tmp_path)
    store.use_network("n")
    store.append([Stored(0, b"0" * 32, 1, 1, 1, 1, "")], np.ones((1, 4), np.float32))
    store.append([Stored(1, b"", 0, 0, 1, 1, "gone")], np.empty((0, 0), np.float32))
    assert PictureStore(tmp_path).index["reason"].tolist() == [b"", b"gone"]
