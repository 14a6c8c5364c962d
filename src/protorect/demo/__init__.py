"""The demonstration: the paper's Omniglot row and a sorted folder, from data in this package."""
