"""Names of classes."""

import pytest

from protorect import ConflictError, OptionError
from protorect.labeling.class_names import check_is_new, checked_class_name


@pytest.mark.parametrize("name", ["cat", "Crème brûlée", "猫", "🍎 apple", "a-b_c (2)", "x" * 200])
def test_names_of_folders_are_names_of_classes(name):
    assert checked_class_name(name) == name


def test_spaces_around_a_name_and_decomposed_letters_do_not_count():
    assert checked_class_name("  cafe\u0301 ") == "caf\u00e9"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("a/b", "it contains /"),
        ("a\\b", r"it contains \\"),
        ("a\nb", "control character"),
        ("a\x00b", "control character"),
        ("x" * 300, "300 bytes"),
        ("ä" * 101, "202 bytes"),
        (".hidden", "dot"),
        ("end.", "dot"),
        ("_unknown", "reserved"),
        ("_UNSURE", "reserved"),
        ("Aux", "reserved"),
        ("\ud800", "not Unicode"),
    ],
)
def test_what_cannot_name_a_class_is_said(name, problem):
    with pytest.raises(OptionError, match=problem):
        checked_class_name(name)


@pytest.mark.parametrize("name", [None, 3, b"cat"])
def test_a_name_is_text(name):
    with pytest.raises(OptionError, match="must be text"):
        checked_class_name(name)


def test_names_that_differ_in_case_only_are_the_same():
    check_is_new("dog", ["cat"])
    with pytest.raises(ConflictError, match="'cat' already, which differs in upper and lower"):
        check_is_new("CAT", ["cat"])
    with pytest.raises(ConflictError, match="'cat' already;"):
        check_is_new("cat", ["cat"])
