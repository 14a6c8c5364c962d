"""The paper's Omniglot row, measured on the test characters in this package.

They are packed and embedded as `protorect prepare omniglot` and `protorect extract` do it, with the
network `omniglot-conv64`; `benchmarks/demo_data.py` made the compact copy of the drawings.
"""

import lzma
import zipfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protorect._utils.parameters import Parameters, parameter
from protorect._utils.progress import Progress, ProgressOf
from protorect.datasets.packed import PackedDataset
from protorect.datasets.prepare import prepare
from protorect.datasets.splits import ClassSplit, known_split
from protorect.embedding.extract import extract
from protorect.evaluation.episodes import Episodes
from protorect.evaluation.features import load_features
from protorect.evaluation.sampling import sample_episodes
from protorect.paper.feature_sets import FeatureSet
from protorect.paper.figures import ByShot, accuracy_over_z
from protorect.paper.measure import EPISODES, QUERY, Setting
from protorect.paper.published import SHOTS

NETWORK = "omniglot-conv64"
FEATURES = FeatureSet("omniglot", "conv64")
WAY = Setting(FEATURES).way
METHODS = ("cspn", "bd-c", "bd-i", "bd-cspn", "bd-i:weighting=classes", "bd-cspn-classes")
_PBM_HEAD = b"P4 105 105\n"  # followed by 105 rows of 105 bits, each padded to whole bytes
_RASTER = 105 * 14  # bytes
_DRAWINGS = 20  # of each character


class DemoOptions(Parameters):
    """The size of the demonstration."""

    episodes: int = parameter(EPISODES, "Number of episodes.", minimum=1)
    seed: int = parameter(0, "Random seed of the episodes.")


@dataclass(frozen=True, eq=False)
class OmniglotResult:
    """The measurements on Omniglot, and the pictures of its episodes."""

    options: DemoOptions
    images: NDArray[np.uint8]  # (n, 28, 28), bright strokes on black
    class_names: tuple[str, ...]  # such as "Tengwar/character01/rot090"
    labels: NDArray[np.int64]  # (n,), indices into `class_names`
    episodes: Episodes
    results: ByShot
    against_z: dict[str, Any]  # plot data: accuracy at each Z, measured and by eq. (25)


def measure_omniglot(options: DemoOptions, progress_of: ProgressOf) -> OmniglotResult:
    """Embed the test characters and evaluate the paper's methods; no file remains.

    The episodes are those of `protorect paper`; Z is the paper's 8, except in the data over Z.
    """
    with TemporaryDirectory(prefix="protorect-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with progress_of("drawings") as progress:
            packed = pack_drawings(folder, progress).split("test")
        with progress_of("features") as progress:
            out = folder / "features.npz"
            extract(NETWORK, folder / "packed", out, precision="float32", progress=progress)
        features, labels = load_features(folder / "features.npz")
        images = np.array(packed.images[..., 0])
    episodes = sample_episodes(
        labels,
        way=WAY,
        shot=max(SHOTS),
        query=QUERY,
        episodes=options.episodes,
        seed=options.seed,
    )
    with progress_of("episodes") as progress:
        results, _, against_z = accuracy_over_z(features, labels, METHODS, episodes, progress)
    names, numbers = packed.class_names, packed.labels
    return OmniglotResult(options, images, names, numbers, episodes, results, against_z)


def pack_drawings(folder: Path, progress: Progress | None = None) -> PackedDataset:
    """Pack the test characters into `folder`/packed, as `protorect prepare omniglot` does."""
    split = known_split("omniglot")
    assert split is not None
    data = files("protorect.demo").joinpath("data", "omniglot-test.xz").read_bytes()
    rasters = memoryview(lzma.decompress(data))
    root = folder / "omniglot"
    (root / "images_background").mkdir(parents=True)
    with zipfile.ZipFile(root / "images_evaluation.zip", "w") as archive:
        for number, start in enumerate(range(0, len(rasters), _RASTER)):
            character, drawing = divmod(number, _DRAWINGS)
            path = f"images_evaluation/{split.test[character]}/{drawing:02}.pbm"
            archive.writestr(path, _PBM_HEAD + rasters[start : start + _RASTER])
    test_only = ClassSplit((), (), split.test)
    out = folder / "packed"
    return prepare("omniglot", root, out, split=test_only, workers=1, progress=progress)
