"""Thresholds are shares."""

import pytest

from protorect.errors import OptionError
from protorect.uncertainty.thresholds import Thresholds


@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), "often"])
@pytest.mark.parametrize("name", ["unknown", "unsure"])
def test_thresholds_outside_of_zero_to_one_are_refused(name, value):
    with pytest.raises(OptionError, match=rf"{name} is .* must lie in 0 .. 1"):
        Thresholds(**{name: value})
