"""The predicted label of one picture, which is one row of a table."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from protorect._utils.text import printable

UNKNOWN, UNSURE = "_unknown", "_unsure"


class Prediction(NamedTuple):
    """The predicted label of one picture.

    The names of the fields are the columns of the tables.
    """

    path: str
    label: str  # the most probable class, also of a picture that is set aside
    probability: float  # of the label
    runner_up: str  # the second most probable class
    margin: float  # between the probabilities of the two
    familiarity: float  # 1 - ood
    folder: str  # where the picture is placed: its label, `_unknown` or `_unsure`

    @classmethod
    def said(cls, path: str, label: str) -> Self:
        """What a person says of a picture; `_unknown`: that it is of none of the classes."""
        if label == UNKNOWN:
            return cls(path, "", 1.0, "", 1.0, 0.0, UNKNOWN)
        return cls(path, label, 1.0, "", 1.0, 1.0, label)

    @property
    def ood(self) -> float:
        """Out-of-distribution score in 0 .. 1, higher is more out-of-distribution."""
        return round(1 - self.familiarity, 12)


COLUMNS = (*Prediction._fields, "ood")


def rounded(row: Prediction) -> Prediction:
    """A prediction for a table: a printable path, numbers of four digits."""
    return row._replace(
        path=printable(row.path),
        probability=round(row.probability, 4),
        margin=round(row.margin, 4),
        familiarity=round(row.familiarity, 4),
    )


def columns(rows: Sequence[Prediction]) -> dict[str, list[Any]]:
    """Lists by the name of their column."""
    return {name: [getattr(row, name) for row in rows] for name in COLUMNS}
