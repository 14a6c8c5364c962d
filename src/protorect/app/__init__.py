"""The labeling page and its HTTP API: a thin server over a `LabelingSession`."""
