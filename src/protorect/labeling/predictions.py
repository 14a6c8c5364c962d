"""Predicted labels of pictures, and the tables they are written as."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from protorect._utils.files import write_text, written_whole
from protorect._utils.text import printable
from protorect.errors import MissingExtraError
from protorect.images.find import FailedPicture

if TYPE_CHECKING:
    import pandas

UNKNOWN, UNSURE = "_unknown", "_unsure"


class Prediction(NamedTuple):
    """The predicted label of one picture.

    `label` is the most probable class, also where the picture is set aside; `folder` is where it
    goes: its label, `_unknown` or `_unsure`. `margin` is the difference of its probability and the
    runner-up's; `familiarity` is 1 - `ood`.
    """

    path: str
    label: str
    probability: float
    runner_up: str
    margin: float
    familiarity: float
    folder: str

    @property
    def ood(self) -> float:
        """Out-of-distribution score in 0 .. 1, higher is more out-of-distribution."""
        return round(1 - self.familiarity, 12)


COLUMNS = (*Prediction._fields, "ood")


@dataclass(frozen=True)
class Predictions(Sequence[Prediction]):
    """Predictions in the order of the pictures.

    `rows` has one prediction for each picture that could be read and `contents` the SHA-256 of its
    file in hexadecimal; `problems` are the pictures that could not be read, `examples` those that
    have the content, and so the label, of an example. `method` is the one that was used.

    Examples
    --------
    >>> from protorect.labeling.predictions import Prediction, Predictions
    >>> row = Prediction("1.jpg", "cat", 0.9, "dog", 0.8, 0.75, "cat")
    >>> predictions = Predictions((row,), (), (), ("cat", "dog"), "cspn", ("",))
    >>> predictions.labels, predictions[0].ood
    (['cat'], 0.25)
    """

    rows: tuple[Prediction, ...]
    problems: tuple[FailedPicture, ...]
    examples: tuple[str, ...]
    classes: tuple[str, ...]
    method: str
    contents: tuple[str, ...]

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
    def frame(self) -> pandas.DataFrame:
        """The predictions as a pandas frame, one row per picture."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError(
                "a frame needs pandas, which is not installed: pip install 'protorect[pandas]'."
            ) from error
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
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(
            "Parquet needs pyarrow, which is not installed: pip install 'protorect[parquet]'."
        ) from error
    return pyarrow


def write_parquet(path: str | os.PathLike[str], rows: Sequence[Prediction]) -> None:
    """Write predictions as Parquet, whole or not at all."""
    pyarrow = check_parquet()
    table = pyarrow.table(_columns([rounded(row) for row in rows]))
    with written_whole(path) as temporary:
        pyarrow.parquet.write_table(table, temporary)


def _columns(rows: Sequence[Prediction]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in COLUMNS}
