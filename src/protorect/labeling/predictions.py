"""Predicted labels of pictures, and the tables they are written as."""

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from protorect._utils.files import write_text, written_whole
from protorect._utils.text import printable
from protorect.errors import needs_extra
from protorect.images.find import FailedPicture

if TYPE_CHECKING:
    import pandas

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

    @property
    def ood(self) -> float:
        """Out-of-distribution score in 0 .. 1, higher is more out-of-distribution."""
        return round(1 - self.familiarity, 12)


COLUMNS = (*Prediction._fields, "ood")


@dataclass(frozen=True)
class Predictions(Sequence[Prediction]):
    """Predictions in the order of the pictures.

    Examples
    --------
    >>> from protorect.labeling.predictions import Prediction, Predictions
    >>> row = Prediction("1.jpg", "cat", 0.9, "dog", 0.8, 0.75, "cat")
    >>> predictions = Predictions((row,), (), (), ("cat", "dog"), "cspn", ("",))
    >>> predictions.labels, predictions[0].ood
    (['cat'], 0.25)
    """

    rows: tuple[Prediction, ...]  # one per readable picture
    problems: tuple[FailedPicture, ...]  # the pictures that could not be read
    examples: tuple[str, ...]  # the pictures with the content, and so the label, of an example
    classes: tuple[str, ...]
    method: str  # the one that was used
    contents: tuple[str, ...]  # SHA-256 of each readable picture's file, in hexadecimal

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        """A prediction, or a slice of them."""
        return self.rows[index]

    @property
    def labels(self) -> list[str]:
        """The most probable class of every picture."""
        return [row.label for row in self.rows]

    @property
    def frame(self) -> "pandas.DataFrame":
        """The predictions as a pandas frame, one row per picture."""
        with needs_extra("a frame needs pandas", "pandas"):
            import pandas
        return pandas.DataFrame(self.columns())

    def columns(self) -> dict[str, list[Any]]:
        """Lists by the name of their column."""
        return _columns(self.rows)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file, whole or not at all."""
        rows = map(rounded, self.rows)
        write_text(path, table_text(COLUMNS, ((*row, row.ood) for row in rows)))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file, whole or not at all."""
        write_parquet(path, self.rows)


def rounded(row: Prediction) -> Prediction:
    """A prediction for a table: a printable path, numbers of four digits."""
    return row._replace(
        path=printable(row.path),
        probability=round(row.probability, 4),
        margin=round(row.margin, 4),
        familiarity=round(row.familiarity, 4),
    )


def table_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as comma-separated text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def check_parquet() -> Any:
    """Import pyarrow, or raise with the line that installs it."""
    with needs_extra("Parquet needs pyarrow", "parquet"):
        import pyarrow
        import pyarrow.parquet
    return pyarrow


def write_parquet(path: str | os.PathLike[str], rows: Sequence[Prediction]) -> None:
    """Write predictions as Parquet, whole or not at all."""
    pyarrow = check_parquet()
    table = pyarrow.table(_columns([rounded(row) for row in rows]))
    with written_whole(path) as temporary:
        pyarrow.parquet.write_table(table, temporary)


def _columns(rows: Sequence[Prediction]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in COLUMNS}
