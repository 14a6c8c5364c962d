"""The comparison with transductive fine-tuning, of the head and of the whole network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from protorect._utils.progress import Progress
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.fine_tuned import evaluate_fine_tuned
from protorect.methods import PICTURE_METHODS
from protorect.paper.measure import Findings, Setting, accuracies, drawn, measured
from protorect.paper.published import SHOTS
from protorect.paper.sources import SourceFeatures


def fine_tuning(
    features: SourceFeatures,
    methods: Sequence[str],
    settings: Sequence[Setting],
    seed: int,
    progress: Progress | None,
) -> Findings:
    """`accuracies`, and those of fine-tuned networks where run and pictures are there.

    These are of fewer episodes, so their paired difference to CSPN on the same episodes is kept
    among the drawings.
    """
    on_features = [name for name in methods if name not in PICTURE_METHODS]
    found = accuracies(features, on_features, settings, seed, progress)
    if not features.folder.has_pictures(features.source):
        return found
    pictures = features.folder.pictures(features.source)
    chosen = [PICTURE_METHODS[name] for name in methods if name in PICTURE_METHODS]
    for setting in settings:
        fewer = replace(setting, episodes=min(setting.episodes, setting.fine_tuned))
        episodes = drawn(features.test, setting, seed).first(fewer.episodes)
        results = evaluate_fine_tuned(
            pictures, chosen, shot=SHOTS, episodes=episodes, progress=progress
        )
        found.measured += [
            measured(fewer, one.method, one.shot, one.accuracy, one.ci95) for one in results
        ]
        test = features.test
        plain = evaluate(test.features, test.labels, "cspn", shot=SHOTS, episodes=episodes)
        by_shot = {one.shot: one for one in plain}
        for one in results:
            differences = found.drawings.setdefault(one.method, {"episodes": one.episodes})
            differences[str(one.shot)] = one.minus(by_shot[one.shot])._asdict()
    return found
