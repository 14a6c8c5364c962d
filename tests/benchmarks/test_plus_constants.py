"""The study of the constants of bd-cspn-plus."""

from benchmarks.plus_constants import constants_table


def test_a_constant_is_chosen_on_the_other_sets():
    sets = {"a-x": {"joining=8": [1.0]}, "b-y": {"joining=8": [-3.0]}, "c-z": {"joining=8": [1.0]}}
    (row,) = constants_table({"values": {"joining": (8,)}, "sets": sets}).rows
    # Without b the value 8 is best, without a or c the default is.
    assert row[:3] == ["`joining`", "8: -0.33", "default (2), 8 (1)"]
    assert row[4] == "-3.00"
