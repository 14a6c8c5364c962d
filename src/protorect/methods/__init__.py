"""Methods by name.

A `Method` scores the queries of a batch of tasks from their features, a `PictureMethod` those of
one task from its pictures, with a network that it fine-tunes.

>>> import protorect
>>> protorect.METHODS["bd-cspn"].with_options(z=4, rank="softmax").name
'bd-cspn:z=4,rank=softmax'
"""

from protorect.methods.method import METHODS, PICTURE_METHODS, Method, PictureMethod
from protorect.methods.registry import PAPER, chosen_methods, chosen_with_pictures, method

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
