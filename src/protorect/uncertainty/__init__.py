"""Calibrated probabilities, out-of-distribution scores and the thresholds on them."""
