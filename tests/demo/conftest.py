"""A demonstration with made-up characters and the real photographs."""

import pytest

from helpers.demo import made_up_omniglot
from protorect.demo.photographs import sort_photographs
from protorect.sorting.sort import no_progress


@pytest.fixture(scope="session")
def omniglot():
    return made_up_omniglot()


@pytest.fixture(scope="session")
def photographs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "page-photographs"
    return sort_photographs(folder, no_progress)
