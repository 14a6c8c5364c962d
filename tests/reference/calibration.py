"""A slow reading of temperature and expected calibration error."""

import math


def negative_log_likelihood(scores, labels, factor):
    total = 0.0
    for row, label in zip(scores, labels, strict=True):
        powers = [math.exp(factor * (value - max(row))) for value in row]
        total -= math.log(powers[label] / sum(powers))
    return total / len(labels)
