"""Methods by name.

A `Method` is fitted to a batch of tasks, given by features, and then is a `Fitted`, which scores
samples. A `PictureMethod` scores the queries of one task from pictures, with a network that it
fine-tunes. `interface` has the layout of scores and classes.

>>> import protorect
>>> protorect.METHODS["bd-cspn"].with_options(z=4, rank="softmax").name
'bd-cspn:z=4,rank=softmax'
"""

from protorect.methods.interface import Fitted, Solution, Task
from protorect.methods.method import METHODS, PICTURE_METHODS, Method, PictureMethod
from protorect.methods.registry import (
    PAPER,
    chosen_methods,
    chosen_with_pictures,
    get_method,
    method,
)
from protorect.methods.rules import Rule

__all__ = [
    "METHODS",
    "PAPER",
    "PICTURE_METHODS",
    "Fitted",
    "Method",
    "PictureMethod",
    "Rule",
    "Solution",
    "Task",
    "chosen_methods",
    "chosen_with_pictures",
    "get_method",
    "method",
]
