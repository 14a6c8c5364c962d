"""What a pile was sorted into: columns, and the tables they can be written as."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
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
    """What one picture was taken for.

    `label` is the likeliest class, also where the picture was set aside; `folder` is where it
    goes: its label, `_unknown` or `_unsure`. `margin` is the lead of its probability over the
    runner-up's; `familiarity` is about the share of the class's pictures that are less like it.
    """

    path: str
    label: str
    probability: float
    runner_up: str
    margin: float
    familiarity: float
    folder: str


COLUMNS = Prediction._fields


@dataclass(frozen=True)
class Predictions(Sequence[Prediction]):
    """Predictions of a pile, in the order of its pictures.

    Parameters
    ----------
    rows
        One for each picture that could be read.
    problems
        The pictures that could not be.
    examples
        Which pictures of the pile have the content of an example, and so have its label.
    classes
        The labels there are.
    method
        The name of the method that was used.
    contents
        SHA-256 of each picture's file, in hexadecimal, in step with `rows`.
    """

    rows: tuple[Prediction, ...]
    problems: tuple[FailedPicture, ...]
    examples: tuple[str, ...]
    classes: tuple[str, ...]
    method: str
    contents: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        """A prediction, or several."""
        return self.rows[place]

    @property
    def labels(self) -> list[str]:
        """The likeliest class of every picture."""
        return [row.label for row in self.rows]

    @property
    def frame(self) -> pandas.DataFrame:
        """As a pandas frame, a row a picture."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtraError(
                "a frame needs pandas, which is not installed: pip install 'protorect[pandas]'."
            ) from error
        return pandas.DataFrame(self.columns())

    def columns(self) -> dict[str, list[Any]]:
        """Lists by the name of their column."""
        return {name: [getattr(row, name) for row in self.rows] for name in COLUMNS}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file, whole or not at all."""
        write_text(path, table_text(COLUMNS, map(written_row, self.rows)))

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file, whole or not at all."""
        write_parquet(path, self.rows)


def written_row(row: Prediction) -> Prediction:
    """A prediction as it is written: a printable path, numbers of four digits."""
    return row._replace(
        path=printable(row.path),
        probability=round(row.probability, 4),
        margin=round(row.margin, 4),
        familiarity=round(row.familiarity, 4),
    )


def table_text(header: Sequence[str], rows: Any) -> str:
    """Rows as comma-separated text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def check_parquet() -> Any:
    """pyarrow, or the line that installs it."""
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
    written = [written_row(row) for row in rows]
    table = pyarrow.table({name: [getattr(row, name) for row in written] for name in COLUMNS})
    with written_whole(path) as beside:
        pyarrow.parquet.write_table(table, beside)
