"""Thresholds are shares."""

import pytest

from protorect.errors import OptionError
from protorect.uncertainty.thresholds import Thresholds, checked_thresholds


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), "often", True, None])
@pytest.mark.parametrize("name", ["unknown", "unsure"])
def test_thresholds_outside_of_zero_to_one_are_refused(name, value):
    with pytest.raises(OptionError, match=rf"{name} is .* must lie in 0 .. 1"):
        Thresholds(**{name: value})


@pytest.mark.parametrize("value", ["x", None, 0.5, (0.1, 0.5), Thresholds])
def test_what_are_no_thresholds_is_refused(value):
    with pytest.raises(OptionError, match="thresholds is .*; it must be Thresholds"):
        checked_thresholds(value)
    assert checked_thresholds(Thresholds()) == Thresholds(0.08, 0.5)
