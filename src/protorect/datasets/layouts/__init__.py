"""How each data set lies on disk: one file a layout; each finds the pictures of every class.

A layout is a function (root, scratch, split) -> Found. It reads names, not pictures. `scratch` is
a folder for what has to be written out on the way; it is gone when all is packed.
"""

from protorect.datasets.layouts.cifar import find_cifar_fs
from protorect.datasets.layouts.class_folders import find_class_folders
from protorect.datasets.layouts.cub import find_cub
from protorect.datasets.layouts.folder import find_folder
from protorect.datasets.layouts.found import Found, describe
from protorect.datasets.layouts.mini_imagenet import find_mini_imagenet
from protorect.datasets.layouts.omniglot import find_omniglot

__all__ = [
    "Found",
    "describe",
    "find_cifar_fs",
    "find_class_folders",
    "find_cub",
    "find_folder",
    "find_mini_imagenet",
    "find_omniglot",
]
