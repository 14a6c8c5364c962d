import numpy as np
import pandas as pd
import pytest
import torch

from protorect import DataError, OptionError, load_features, save_features
from protorect.evaluation.features import FeatureTable, feature_table, mean_feature

ROWS = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0]], dtype=np.float32)
LABELS = np.array([0, 1, 1])


def test_table_shares_the_rows_and_has_their_inverse_norms():
    table = FeatureTable.of(ROWS, LABELS)
    assert np.shares_memory(table.rows.numpy(), ROWS)
    assert table.scale.tolist() == pytest.approx([0.2, 0.0, 0.5])


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", ">f4", "int32", "uint8", "bool"]
)
def test_all_types_of_numbers(dtype):
    table = FeatureTable.of(ROWS.astype(dtype), LABELS)
    assert table.rows.is_floating_point()
    assert table.scale.dtype == (torch.float64 if dtype == "float64" else torch.float32)


def test_torch_tensors_that_require_gradients():
    features = torch.tensor(ROWS, requires_grad=True).to(torch.bfloat16)
    table = FeatureTable.of(features, torch.tensor(LABELS))
    assert table.rows.dtype == torch.bfloat16
    assert not table.scale.requires_grad


def test_read_only_and_mapped_arrays(tmp_path):
    np.save(tmp_path / "f.npy", ROWS)
    mapped = np.load(tmp_path / "f.npy", mmap_mode="r")
    table = FeatureTable.of(mapped, LABELS)
    assert table.rows.tolist() == ROWS.tolist()
    assert np.shares_memory(table.rows.numpy(), mapped)
    assert FeatureTable.of(ROWS[::-1], LABELS).rows.tolist() == ROWS[::-1].tolist()


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (ROWS[0], LABELS, r"features must be \(n, dim\), got shape \(2,\)"),
        (ROWS[:, :0], LABELS, r"features must be \(n, dim\), got shape \(3, 0\)"),
        (ROWS, LABELS[:2], r"got 3 rows of features and labels of shape \(2,\)"),
        (ROWS, [7, 7, 7], "all labels are 7; at least two classes"),
        (ROWS, [0.0, 1.0, np.nan], "a label is NaN"),
        (np.ma.masked_less(ROWS, 1), LABELS, "features are a masked array"),
        (torch.zeros(3, 2, dtype=torch.complex64), LABELS, "a dense tensor of real numbers"),
        (ROWS, np.array([{}, 1, 2], dtype=object), "labels must be numbers or strings"),
        (ROWS.astype(complex), LABELS, "features must be numbers, they are complex128"),
        (ROWS.astype(str), LABELS, "features must be numbers"),
        ([[1, np.nan], [1, 2], [np.inf, 0]], LABELS, "2 of 3 feature rows .*: row 0, 2. Remove"),
        (np.full((9, 2), np.nan), np.arange(9), "9 of 9 feature rows .*: row 0, 1, 2, 3, 4, ..."),
        (np.full((3, 2), 3e38, np.float32), LABELS, "feature row 0 has a norm too large"),
    ],
)
def test_unusable_features_and_labels_are_refused(features, labels, message):
    with pytest.raises(DataError, match=message):
        FeatureTable.of(features, labels)


def test_strings_may_come_as_objects(tmp_path):
    names = pd.Series(["wren", "robin", "robin"])
    assert FeatureTable.of(ROWS, names).labels.tolist() == names.tolist()
    assert FeatureTable.of(ROWS, names.to_numpy(dtype=object)).labels.tolist() == names.tolist()
    save_features(tmp_path / "f.npz", ROWS, names)
    assert load_features(tmp_path / "f.npz")[1].tolist() == names.tolist()


def test_numbers_wider_than_torch_knows():
    assert FeatureTable.of(ROWS.astype(np.longdouble), LABELS).rows.dtype == torch.float64


def test_class_names_must_be_a_list(tmp_path):
    for names in (np.array("wren"), np.array([["wren", "robin"]])):
        np.savez(tmp_path / "f.npz", features=ROWS, labels=LABELS, class_names=names)
        with pytest.raises(DataError, match="class_names must be a list"):
            load_features(tmp_path / "f.npz")


def test_file_round_trip(tmp_path):
    save_features(tmp_path / "f.npz", ROWS, LABELS)
    features, labels = load_features(tmp_path / "f.npz")
    assert (features == ROWS).all()
    assert (labels == LABELS).all()


def test_class_names_replace_numbers_if_all_are_different(tmp_path):
    save_features(tmp_path / "f.npz", ROWS, LABELS, np.array(["wren", "robin"]))
    assert load_features(tmp_path / "f.npz")[1].tolist() == ["wren", "robin", "robin"]
    save_features(tmp_path / "f.npz", ROWS, LABELS, np.array(["wren", "wren"]))
    assert load_features(tmp_path / "f.npz")[1].tolist() == [0, 1, 1]
    save_features(tmp_path / "f.npz", ROWS, LABELS, np.array(["wren"]))
    with pytest.raises(DataError, match="1 class_names for labels 0 .. 1"):
        load_features(tmp_path / "f.npz")


def test_groups_in_a_file(tmp_path):
    path = tmp_path / "f.npz"
    save_features(path, ROWS, LABELS, groups=["a", "b", "b"])
    assert [part.tolist() for part in load_features(path)] == [ROWS.tolist(), LABELS.tolist()]
    table = FeatureTable.of(path)
    assert table.groups.tolist() == ["a", "b", "b"]
    assert table.path == path
    assert FeatureTable.of(path, groups=[1, 2, 3]).groups.tolist() == [1, 2, 3]
    assert FeatureTable.of(table, groups=[1, 2, 3]).groups.tolist() == [1, 2, 3]
    assert FeatureTable.of(table, device="cpu").groups.tolist() == ["a", "b", "b"]
    np.savez(path, features=ROWS, labels=LABELS, groups=[1, 2])
    with pytest.raises(DataError, match=r"groups must be .* 3 rows, shape \(2,\)"):
        FeatureTable.of(path)
    with pytest.raises(DataError, match=r"groups must be .* 3 rows, shape \(2,\)"):
        save_features(path, ROWS, LABELS, groups=[1, 2])


def test_a_path_has_its_own_labels_and_arrays_need_them(tmp_path):
    save_features(tmp_path / "f.npz", ROWS, LABELS)
    with pytest.raises(OptionError, match="labels are given, and the features have their own"):
        FeatureTable.of(tmp_path / "f.npz", LABELS)
    with pytest.raises(OptionError, match="labels are missing"):
        FeatureTable.of(ROWS)


def test_a_table_from_a_tuple():
    assert feature_table((ROWS, LABELS)).groups is None
    assert feature_table((ROWS, LABELS, [7, 8, 9])).groups.tolist() == [7, 8, 9]
    with pytest.raises(OptionError, match="not a tuple of 1"):
        feature_table((ROWS,))


def test_the_mean_of_base_features(tmp_path):
    save_features(tmp_path / "f.npz", ROWS, LABELS)
    for base in (ROWS, torch.tensor(ROWS), tmp_path / "f.npz", str(tmp_path / "f.npz")):
        assert mean_feature(base) == [1.0, 2.0]
    with pytest.raises(DataError, match=r"base features must be \(n, dim\), got shape \(2,\)"):
        mean_feature(ROWS[0])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": ROWS * np.nan}, "3 of 3 feature rows hold NaN"),
        ({"labels": [7, 7, 7]}, "all labels are 7"),
        ({"labels": [0, 1]}, "features and labels must have the same length"),
        ({"groups": [1, 2]}, "groups must be"),
        ({"features": ROWS[0]}, "features must be"),
        ({"features": ROWS.astype(str)}, "features must be numbers"),
    ],
)
def test_errors_about_the_content_name_the_file(tmp_path, arrays, message):
    path = tmp_path / "f.npz"
    np.savez(path, **({"features": ROWS, "labels": LABELS} | arrays))
    with pytest.raises(DataError) as error:
        FeatureTable.of(path)
    assert str(error.value).startswith(f"{path}: {message}")
    with pytest.raises(OptionError, match="^device 'abacus'"):
        FeatureTable.of(path, device="abacus")


def test_base_features_must_be_finite(tmp_path):
    broken = ROWS.astype(float)
    broken[1, 0] = np.inf
    with pytest.raises(DataError, match="^1 of 3 feature rows hold NaN or infinite values: row 1"):
        mean_feature(broken)
    save_features(tmp_path / "f.npz", broken, LABELS)
    with pytest.raises(DataError, match="f.npz: 1 of 3 feature rows hold NaN or infinite"):
        mean_feature(tmp_path / "f.npz")
