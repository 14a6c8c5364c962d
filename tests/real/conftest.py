"""Where the real data sets are: PROTORECT_DATA, or ../shared/data beside the repository."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def real_data():
    """A function from a file name to its path; skips the test if it is not there."""
    given = os.environ.get("PROTORECT_DATA")
    folder = Path(given) if given else REPOSITORY.parent / "shared" / "data"

    def find(name):
        if not (folder / name).exists():
            pytest.skip(f"needs {name} in {folder}; set PROTORECT_DATA to the folder that has it")
        return folder / name

    return find
