"""When a picture is set aside instead of labeled."""

from typing import Any

from protorect._utils.parameters import Parameters, parameter
from protorect.errors import OptionError


class Thresholds(Parameters):
    """When a picture is set aside.

    Examples
    --------
    >>> import protorect
    >>> protorect.Thresholds(unknown=0.2)
    Thresholds(unknown=0.2, unsure=0.5)
    """

    unknown: float = parameter(
        0.08,
        "A picture with an out-of-distribution score above 1 - unknown belongs to none of the "
        "classes. At most about this share of the pictures of the classes is set aside by mistake. "
        "0 for never.",
        maximum=1,
    )
    unsure: float = parameter(
        0.5, "A picture whose label has less probability is unsure. 0 for never.", maximum=1
    )


DEFAULT_THRESHOLDS = Thresholds()


def checked_thresholds(thresholds: Any) -> Thresholds:
    """The thresholds; OptionError if the value is of another type."""
    if not isinstance(thresholds, Thresholds):
        raise OptionError(
            f"thresholds is {thresholds!r}; it must be Thresholds(unknown=..., unsure=...)."
        )
    return thresholds
