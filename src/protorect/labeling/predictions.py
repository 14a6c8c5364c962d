"""Predicted labels of pictures."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from protorect.errors import needs_extra
from protorect.images.find import FailedPicture
from protorect.labeling.exports import export
from protorect.labeling.prediction import Prediction, columns

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Predictions(Sequence[Prediction]):
    """Predictions in the order of the pictures.

    Examples
    --------
    >>> from protorect.labeling.prediction import Prediction
    >>> from protorect.labeling.predictions import Predictions
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
    network: str = ""  # name, precision and device of the one that was used

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
        return columns(self.rows)

    def export(self, path: str | os.PathLike[str], format: str) -> None:  # noqa: A002
        """Write a file of one of the formats of `protorect.labeling.exports`."""
        export(self.rows, path, format)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file, whole or not at all."""
        self.export(path, "csv")

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write a Parquet file, whole or not at all."""
        self.export(path, "parquet")
