"""The confusion matrix."""

import numpy as np

from protorect.report.plots.confusion import confusion_plot


def test_the_plot_has_every_name_and_count():
    svg = confusion_plot(np.array([[5, 2], [0, 7]]), ["cat", "dog"])
    for text in ("cat", "dog", "5", "2", "7", "true class"):
        assert f">{text}<" in svg
