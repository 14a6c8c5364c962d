"""The experiments: what each measures, on which sources, and which tables it belongs to."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from protorect._utils.progress import Progress
from protorect.errors import unknown_name
from protorect.methods import PICTURE_METHODS
from protorect.paper.fine_tuned import fine_tuning
from protorect.paper.measure import Findings, Setting, accuracies
from protorect.paper.pictures import pictures
from protorect.paper.record import Measured, Record
from protorect.paper.robust import robustness
from protorect.paper.sources import FeatureFolder, Source, SourceFeatures
from protorect.paper.weighting import PLAIN, weighting_study

Measure = Callable[
    [SourceFeatures, Sequence[str], Sequence[Setting], int, Progress | None], Findings
]


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, or of ours.

    Parameters
    ----------
    name
        As given on the command line.
    title, protocol
        What it is, and how it is measured, for readers.
    tables
        The tables of the paper it measures again.
    settings
        Each source with its episodes; a source whose features are missing is left out.
    methods
        Which are measured.
    measure
        What measures them on one source.
    beside
        Tables of another experiment that are shown beside this one too.
    """

    name: str
    title: str
    protocol: str
    tables: tuple[int, ...]
    settings: tuple[Setting, ...]
    methods: tuple[str, ...]
    measure: Measure = accuracies
    beside: tuple[int, ...] = ()

    @property
    def on_pictures(self) -> tuple[str, ...]:
        """The methods that need the network and its pictures."""
        return tuple(name for name in self.methods if name in PICTURE_METHODS)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Each source once."""
        return tuple(dict.fromkeys(setting.source for setting in self.settings))


FIVE_WAY = "5-way, 15 queries a class, 600 episodes, Z chosen on as many validation episodes."
BACKBONES = ("conv64", "conv128", "conv256", "resnet12", "wrn28-10")
COMPARED = ("cspn", "bd-cspn", "bd-cspn-classes")
ABLATED = ("cspn", "bd-c", "bd-i", "bd-cspn", "bd-i:weighting=classes", "bd-cspn-classes")
MINI, TIERED = Source("mini-imagenet", "wrn28-10"), Source("tiered-imagenet", "wrn28-10")
HERE = (Source("omniglot", "conv64"), Source("cub", "conv64"))
META_SOURCES = (
    "ilsvrc-2012 omniglot aircraft cu-birds dtd quickdraw fungi vgg-flower traffic-sign mscoco"
)


def _on(dataset: str, *backbones: str) -> tuple[Setting, ...]:
    return tuple(Setting(Source(dataset, backbone)) for backbone in backbones)


def _ways(source: Source, *ways: int) -> tuple[Setting, ...]:
    # A thousand ways are 15,000 queries an episode: 50 of them tell more than 600 of five ways.
    return tuple(
        Setting(source, way, 600 if way < 200 else 100 if way == 200 else 50) for way in ways
    )


_ALL = (
    Experiment(
        "main",
        "Against other systems on miniImageNet and tieredImageNet",
        FIVE_WAY,
        (1, 2),
        (Setting(MINI), Setting(TIERED)),
        COMPARED,
    ),
    Experiment(
        "meta-dataset",
        "Meta-Dataset",
        f"{FIVE_WAY} The paper's model is trained on ILSVRC-2012; here it is the ImageNet-trained "
        "EfficientNet-Lite0.",
        (3, 14),
        tuple(Setting(Source(f"meta-{s}", "efficientnet-lite0")) for s in META_SOURCES.split()),
        COMPARED,
    ),
    Experiment(
        "ablation",
        "What each correction brings",
        FIVE_WAY,
        (4,),
        tuple(Setting(source) for source in (MINI, TIERED, *HERE)),
        ABLATED,
    ),
    Experiment(
        "backbones",
        "Backbones on miniImageNet and tieredImageNet",
        FIVE_WAY,
        (5, 8, 9),
        (*_on("mini-imagenet", *BACKBONES), *_on("tiered-imagenet", *BACKBONES[:-1])),
        COMPARED,
    ),
    Experiment(
        "tft",
        "Transductive fine-tuning, the compared system",
        f"{FIVE_WAY} The head is fine-tuned on fixed features; the whole network, which is a "
        "training for each episode, on the first of the episodes only.",
        (),
        (*_on("mini-imagenet", "conv64", "resnet12", "wrn28-10"), *map(Setting, HERE)),
        (*COMPARED, "tft-head", "tft"),
        fine_tuning,
        beside=(5,),
    ),
    Experiment("omniglot", "Omniglot", FIVE_WAY, (6,), _on("omniglot", *BACKBONES), COMPARED),
    Experiment("cub", "CUB", FIVE_WAY, (7,), _on("cub", *BACKBONES), COMPARED),
    Experiment(
        "higher-way",
        "Many classes at once",
        "15 queries a class; 600 episodes, but 100 at 200 ways and 50 at 1000. Z is chosen on 600 "
        "validation episodes of as many ways; for 200 and 1000 ways on 30 of 200 ways.",
        (10, 11, 12),
        (
            *_ways(HERE[0], 10, 20, 50, 200, 1000),
            *(_ways(Source("omniglot", b), 10)[0] for b in BACKBONES[1:]),
            *_ways(HERE[1], 10, 20, 50),
            *_ways(MINI, 10, 20),
            *_ways(TIERED, 10, 20, 50),
        ),
        COMPARED,
    ),
    Experiment(
        "robust",
        "Queries that belong to no class",
        "5-way, 15 queries a class and 15 of each of N' further classes, 600 episodes. Accuracy is "
        "that of the queries which belong to a class; mAP is over the 15 most confident queries "
        "predicted as each class. Z is chosen on validation episodes without distractors.",
        (13,),
        tuple(Setting(s, distractors=n) for s in (MINI, *HERE) for n in (0, 1, 5)),
        COMPARED,
        robustness,
    ),
    Experiment(
        "figures",
        "Figures",
        "5-way, 15 queries a class, 600 episodes.",
        (),
        tuple(map(Setting, HERE)),
        ("cspn", "bd-i"),
        pictures,
    ),
    Experiment(
        "weights",
        "What eq. (6) does",
        "5-way, 15 queries a class, 600 episodes, Z = 8.",
        (),
        tuple(map(Setting, HERE)),
        (PLAIN,),
        weighting_study,
    ),
)
EXPERIMENTS = {one.name: one for one in _ALL}


def experiment(name: str) -> Experiment:
    """Look one up; an unknown name is an error that names the nearest."""
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


def run(
    chosen: Experiment,
    folder: FeatureFolder,
    *,
    episodes: int | None = None,
    fine_tuned: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Record | None:
    """Measure an experiment on the sources whose features are in the folder; None if on none.

    `episodes` is the most of any setting, `fine_tuned` how many of them networks are fine-tuned
    on; the protocol's own numbers if not given.
    """
    start = time.perf_counter()
    measured: list[Measured] = []
    origins, drawings = [], {}
    for source in chosen.sources:
        if not folder.has(source):
            continue
        features = folder.open(source)
        settings = [
            replace(
                one,
                episodes=min(one.episodes, episodes or one.episodes),
                fine_tuned=fine_tuned or one.fine_tuned,
            )
            for one in chosen.settings
            if one.source == source
        ]
        found = chosen.measure(features, chosen.methods, settings, seed, progress)
        measured += found.measured
        origins += [features.val.origin(), features.test.origin()]
        if found.drawings:
            drawings[source.name] = found.drawings
    if not origins:
        return None
    record = Record(
        experiment=chosen.name,
        seed=seed,
        seconds=time.perf_counter() - start,
        features=tuple(origins),
        measured=tuple(measured),
        drawings=drawings,
    )
    return Record.of_text(record.text())  # what is shown is what is kept
