import gc
import subprocess
import sys

import pytest

from protorect._utils.memory import without_garbage_collection

PAGES = """
import resource, sys
import torch
from protorect.backbones.registry import build
from protorect._utils.memory import keep_freed_memory

def step():
    network(pictures).sum().backward()

if sys.argv[1] == "keep":
    keep_freed_memory()
network, pictures = build("conv64", channels=1, size=28), torch.zeros(64, 1, 28, 28)
for _ in range(16):  # until the heap has its final layout
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(8):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages_mapped(mode: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PAGES, mode], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def test_training_steps_after_the_first_ones_map_no_new_pages():
    # The layout of memory differs from process to process, so up to three of each are tried.
    returned = (pages_mapped("return") for _ in range(3))
    most = next((pages for pages in returned if pages > 10_000), 0)
    assert most  # else the call would have no effect
    assert any(pages_mapped("keep") < most / 100 for _ in range(3))


@pytest.fixture
def collection():
    before = gc.isenabled()
    yield lambda enabled: (gc.enable if enabled else gc.disable)()
    (gc.enable if before else gc.disable)()


def fail_inside():
    with without_garbage_collection():
        assert not gc.isenabled()
        raise ValueError("inside")


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_as_before_after_an_error(collection, enabled):
    collection(enabled)
    with pytest.raises(ValueError, match="inside"):
        fail_inside()
    assert gc.isenabled() == enabled
