"""Methods by name.

A method is a function (support, labels, query) -> scores on batches of tasks; see `Method`.
"""

from protorect.methods.registry import METHODS, PAPER, Method, chosen_methods, method

__all__ = ["METHODS", "PAPER", "Method", "chosen_methods", "method"]
