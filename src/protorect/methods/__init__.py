"""Methods by name.

A method is a function (support, labels, query) -> scores on batches of tasks; see `Method`. One
that needs the network and its pictures is a `PictureMethod`.
"""

from protorect.methods.method import Method, PictureMethod
from protorect.methods.registry import (
    METHODS,
    PAPER,
    PICTURE_METHODS,
    chosen_methods,
    chosen_with_pictures,
    method,
)

__all__ = [
    "METHODS",
    "PAPER",
    "PICTURE_METHODS",
    "Method",
    "PictureMethod",
    "chosen_methods",
    "chosen_with_pictures",
    "method",
]
