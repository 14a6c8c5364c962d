"""Batches of random few-shot tasks, as tensors."""

import torch


def random_tasks(shots, n_query, tasks=3, dim=16, dtype=torch.float64, seed=0):
    """Samples around class centers, negative features included; no query of the last class.

    Returns support (tasks, n_support, dim), labels (n_support,) in random order, and queries
    (tasks, n_query, dim). `shots` has one number per class.
    """
    generator = torch.Generator().manual_seed(seed)
    ways = len(shots)
    labels = torch.arange(ways).repeat_interleave(torch.tensor(shots))
    labels = labels[torch.randperm(len(labels), generator=generator)]
    centers = torch.randn(tasks, ways, dim, generator=generator, dtype=torch.float64)
    query_classes = torch.randint(max(1, ways - 1), (n_query,), generator=generator)

    def around(classes):
        noise = torch.randn(tasks, len(classes), dim, generator=generator, dtype=torch.float64)
        return (centers[:, classes] + noise / 2).to(dtype)

    return around(labels), labels, around(query_classes)
