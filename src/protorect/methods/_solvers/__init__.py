"""Numerical solvers that several methods share."""
