"""When a picture is set aside instead of labeled."""

from dataclasses import dataclass

from protorect._utils.parameters import check_number


@dataclass(frozen=True)
class Thresholds:
    """When a picture is set aside.

    Parameters
    ----------
    unknown
        A picture with an out-of-distribution score above 1 - unknown belongs to none of the
        classes. About this share of the pictures of the classes is set aside by mistake. 0 for
        never.
    unsure
        A picture whose label has less probability is unsure. 0 for never.

    Examples
    --------
    >>> import protorect
    >>> protorect.Thresholds(unknown=0.2)
    Thresholds(unknown=0.2, unsure=0.5)
    """

    unknown: float = 0.08
    unsure: float = 0.5

    def __post_init__(self) -> None:
        for name in ("unknown", "unsure"):
            check_number(name, getattr(self, name), 0, 1)


DEFAULT_THRESHOLDS = Thresholds()
