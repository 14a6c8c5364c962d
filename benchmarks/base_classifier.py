"""`python -m benchmarks.base_classifier NETWORK BASE.npz OUT`: weights with a base classifier.

For weights that were published without the classifier that they were trained with. A cosine
classifier of the base classes is fitted to their features, BASE.npz, which NETWORK has made; the
network itself stays as it is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.backbones.cosine_classifier import CosineClassifier, unit_length
from protorect.backbones.pretrained import pretrained_weights
from protorect.backbones.weights import BASE_CLASSIFIER, WEIGHTS
from protorect.evaluation.features import FeatureTable

EPOCHS, BATCH, RATE = 5, 1024, 0.01


def main() -> None:
    """Fit the classifier and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", help="a file of weights, or the name of pretrained ones")
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    table = FeatureTable.of(options.base)
    names, labels = np.unique(table.labels, return_inverse=True)
    classifier = fit(table.rows.float(), torch.from_numpy(labels), len(names))
    weights = pretrained_weights().get(options.network, Path(options.network))
    tensors, card = load_tensors(weights, WEIGHTS)
    base = {f"{BASE_CLASSIFIER}{n}": tensor for n, tensor in classifier.state_dict().items()}
    save_tensors(options.out, tensors | base, card)


def fit(features: Tensor, labels: Tensor, classes: int) -> CosineClassifier:
    """A cosine classifier of the features, from the class means by Adam with a falling rate."""
    classifier = CosineClassifier(features.shape[1], classes)
    means = torch.zeros(classes, features.shape[1]).index_add_(0, labels, unit_length(features))
    classifier.weight.data = unit_length(means)
    adam = torch.optim.Adam(classifier.parameters(), lr=RATE)
    generator = torch.Generator().manual_seed(0)
    for epoch in range(EPOCHS):
        correct = 0
        for rows in torch.randperm(len(labels), generator=generator).split(BATCH):
            adam.param_groups[0]["lr"] = RATE * (1 - epoch / EPOCHS)
            logits = classifier(features[rows])
            adam.zero_grad()
            torch.autograd.backward(cross_entropy(logits, labels[rows]))
            adam.step()
            correct += int((logits.argmax(dim=1) == labels[rows]).sum())
        print(f"epoch {epoch + 1}: accuracy {100 * correct / len(labels):.1f} %", flush=True)
    return classifier


if __name__ == "__main__":
    main()
