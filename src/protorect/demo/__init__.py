"""The demonstration: train on five handwritten digits, test on the others, write a page."""
