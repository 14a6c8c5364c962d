"""Scikit-learn classifiers."""
