"""A few labelled examples and a pile of pictures: labels, folders, a contact sheet."""

from protorect.labelling.classification import Thresholds
from protorect.labelling.classifier import ImageClassifier, sort_images
from protorect.labelling.predictions import Prediction, Predictions

__all__ = ["ImageClassifier", "Prediction", "Predictions", "Thresholds", "sort_images"]
