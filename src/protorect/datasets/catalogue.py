"""The data sets that are known: where to get each, its licence, how it must lie on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from protorect.datasets import layouts
from protorect.datasets.layouts import Found
from protorect.datasets.splits import ClassSplit, known_split
from protorect.errors import unknown_name

Layout = Callable[[Path, Path, ClassSplit | None], Found]


@dataclass(frozen=True)
class Dataset:
    """One data set.

    Parameters
    ----------
    name
        As given on the command line.
    find
        Its layout.
    expects
        What the root must hold, in words.
    source
        Where to get it.
    licence
        On what terms.
    size, channels
        Of a packed picture.
    ink_high
        Whether dark on white becomes bright on black.
    turns
        4 if each quarter turn of a class is a class of its own, else 1.
    flip
        Whether a mirrored picture is still of its class.
    crop_padding
        Pixels around a packed picture of the usual size, for random crops in training.
    """

    name: str
    find: Layout
    expects: str
    source: str
    licence: str
    size: int = 84
    channels: int = 3
    ink_high: bool = False
    turns: int = 1
    flip: bool = True
    crop_padding: int = 8

    @property
    def split(self) -> ClassSplit | None:
        """The published class split, if we have a copy."""
        return known_split(self.name)


_IMAGENET = "ImageNet's terms: non-commercial research and education"
_META = "named as in the class lists of Meta-Dataset"
_OMNIGLOT_PARTS = "images_background and images_evaluation, as folders or .zip files"
_OMNIGLOT_SOURCE = "https://github.com/brendenlake/omniglot"

_ALL = (
    Dataset(
        "folder",
        layouts.find_folder,
        "one folder a class (or train, val and test with class folders inside), or a .tar or .zip",
        "your own pictures",
        "yours",
    ),
    Dataset(
        "omniglot",
        layouts.find_omniglot,
        _OMNIGLOT_PARTS,
        _OMNIGLOT_SOURCE,
        "MIT",
        size=28,
        channels=1,
        ink_high=True,
        turns=4,
        flip=False,
        crop_padding=0,
    ),
    Dataset(
        "cub",
        layouts.find_cub,
        "CUB_200_2011/images/001.Black_footed_Albatross/*.jpg and so on, or the .tar or .tgz",
        "https://www.vision.caltech.edu/datasets/cub_200_2011/",
        "non-commercial research and education; pictures belong to their photographers",
    ),
    Dataset(
        "mini-imagenet",
        layouts.find_mini_imagenet,
        "class folders (n01532829, ...), or train.csv, val.csv and test.csv beside a folder of "
        "pictures, or mini-imagenet-cache-train.pkl, -val.pkl and -test.pkl",
        "https://github.com/twitter-research/meta-learning-lstm",
        _IMAGENET,
    ),
    Dataset(
        "tiered-imagenet",
        layouts.find_class_folders,
        "608 class folders (n01530575, ...), as in the training part of ILSVRC-2012",
        "https://github.com/renmengye/few-shot-ssl-public",
        _IMAGENET,
    ),
    Dataset(
        "cifar-fs",
        layouts.find_cifar_fs,
        "class folders (apple, ...), or cifar-100-python with meta, train and test, or its tar.gz",
        "https://www.cs.toronto.edu/~kriz/cifar.html (split: https://github.com/bertinetto/r2d2)",
        "none stated; cite Krizhevsky (2009)",
        size=32,
        crop_padding=4,
    ),
    Dataset(
        "meta-ilsvrc-2012",
        layouts.find_class_folders,
        "class folders (n01440764, ...); give the class split with --split FILE.json",
        "https://image-net.org/challenges/LSVRC/2012/",
        _IMAGENET,
    ),
    Dataset(
        "meta-omniglot",
        layouts.find_omniglot,
        _OMNIGLOT_PARTS,
        _OMNIGLOT_SOURCE,
        "MIT",
        flip=False,
    ),
    Dataset(
        "meta-aircraft",
        layouts.find_class_folders,
        f"100 variant folders (A340-300, F-16A_B, ...) {_META}",
        "https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/",
        "non-commercial research",
    ),
    Dataset(
        "meta-cu-birds",
        layouts.find_cub,
        "as cub; another class split",
        "https://www.vision.caltech.edu/datasets/cub_200_2011/",
        "non-commercial research and education; pictures belong to their photographers",
    ),
    Dataset(
        "meta-dtd",
        layouts.find_class_folders,
        "dtd/images/banded/*.jpg and so on",
        "https://www.robots.ox.ac.uk/~vgg/data/dtd/",
        "research",
    ),
    Dataset(
        "meta-quickdraw",
        layouts.find_class_folders,
        f"345 class folders (angel, ...) {_META}",
        "https://github.com/googlecreativelab/quickdraw-dataset",
        "CC BY 4.0",
    ),
    Dataset(
        "meta-fungi",
        layouts.find_class_folders,
        f"1,394 class folders (0000.Abortiporus biennis, ...) {_META}",
        "https://github.com/visipedia/fgvcx_fungi_comp",
        "non-commercial research and education",
    ),
    Dataset(
        "meta-vgg-flower",
        layouts.find_class_folders,
        f"102 class folders (090.canna lily, or 90) {_META}",
        "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/",
        "none stated; cite Nilsback and Zisserman (2008)",
    ),
    Dataset(
        "meta-traffic-sign",
        layouts.find_class_folders,
        "GTSRB/Final_Training/Images/00000/*.ppm and so on",
        "https://benchmark.ini.rub.de/gtsrb_dataset.html",
        "none stated; cite Houben et al. (2013)",
        flip=False,
    ),
    Dataset(
        "meta-mscoco",
        layouts.find_class_folders,
        "80 class folders (person, ...) of objects cut out by their boxes",
        "https://cocodataset.org",
        "annotations CC BY 4.0; pictures on Flickr's terms",
    ),
)
DATASETS = {dataset.name: dataset for dataset in _ALL}


def dataset(name: str) -> Dataset:
    """Look one up; an unknown name is an error that names the nearest."""
    try:
        return DATASETS[name]
    except KeyError:
        raise unknown_name("data set", name, DATASETS) from None


def ink_is_high(name: object) -> bool:
    """Whether a data set of this name is packed with ink as high values."""
    return isinstance(name, str) and name in DATASETS and DATASETS[name].ink_high
