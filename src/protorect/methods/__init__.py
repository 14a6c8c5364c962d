"""Methods by name.

A method is a function (support, labels, query) -> scores on batches of tasks; see `Method`.
"""

from protorect.methods.registry import METHODS, Method, method

__all__ = ["METHODS", "Method", "method"]
