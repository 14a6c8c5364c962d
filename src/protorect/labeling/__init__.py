"""From a few labeled examples and many pictures to labels with probabilities."""
