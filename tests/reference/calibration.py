"""Slow reference implementation of the loss that a temperature minimizes."""

import math


def negative_log_likelihood(scores, labels, temperature):
    total = 0.0
    for row, label in zip(scores, labels, strict=True):
        powers = [math.exp((value - max(row)) / temperature) for value in row]
        total -= math.log(powers[label] / sum(powers))
    return total / len(labels)
