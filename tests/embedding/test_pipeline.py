"""Pictures are embedded on all cores, in order, a bounded number at a time."""

import threading
import time
from typing import ClassVar

import numpy as np
import pytest
import torch

from protorect.embedding.cache import FeatureCache
from protorect.embedding.pipeline import embed_pictures
from protorect.embedding.sources import load_embedder
from protorect.errors import DataError
from protorect.images.find import find_pictures


class RecordingEmbedder:
    """An embedder that records the calling threads; its features are the mean colors."""

    digest, size, channels, device, block = "means", 28, 3, "cpu", 1
    origin: ClassVar = {"backbone": "means"}

    def __init__(self):
        self.calls, self.threads = [], []

    def __call__(self, pictures):
        self.calls.append(threading.current_thread().name)
        self.threads.append(torch.get_num_threads())
        return pictures.reshape(len(pictures), -1, 3).mean(axis=1)


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def pictures(colors):
    return find_pictures(colors.pictures).pictures


def test_each_worker_thread_uses_one_core(four_threads, pictures):
    recording = RecordingEmbedder()
    result = embed_pictures(pictures, recording, FeatureCache(None))
    assert recording.threads == [1] * 4  # 24 pictures, a quarter each
    assert all(name.startswith("protorect_") for name in recording.calls)
    assert torch.get_num_threads() == 4
    assert result.pictures == pictures


def test_features_are_in_the_order_of_the_pictures(four_threads, pictures):
    result = embed_pictures(pictures, RecordingEmbedder(), FeatureCache(None))
    for index in (0, 7, 13, 23):
        alone = embed_pictures(pictures[index : index + 1], RecordingEmbedder(), FeatureCache(None))
        np.testing.assert_array_equal(result.features[index], alone.features[0])


def test_several_threads_give_the_same_features_as_one(colors, four_threads, pictures):
    embedder = load_embedder(colors.weights, precision="float32")
    together = embed_pictures(pictures, embedder, FeatureCache(None)).features
    torch.set_num_threads(1)
    alone = embed_pictures(pictures, embedder, FeatureCache(None)).features
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_a_bounded_number_of_chunks_is_embedded_ahead(pictures):
    """However many there are, the threads pause while the features are not used."""
    recording, embedded = RecordingEmbedder(), []

    def progress(done, _):
        if not embedded:
            time.sleep(0.5)
        embedded.append(len(recording.calls))

    embed_pictures(pictures * 40, recording, FeatureCache(None), progress)
    assert embedded[0] <= 4 * torch.get_num_threads() + 1
    assert embedded[-1] == 24 * 40 / 20


def test_features_that_are_not_finite_are_an_error(four_threads, pictures):
    class Broken(RecordingEmbedder):
        def __call__(self, pictures):
            return np.full((len(pictures), 4), np.nan)

    with pytest.raises(DataError, match="means gave features that are not finite"):
        embed_pictures(pictures, Broken(), FeatureCache(None))
    assert torch.get_num_threads() == 4


def test_blocks_are_as_large_as_the_device_needs(four_threads, pictures):
    class Large(RecordingEmbedder):
        block = 24

    large = Large()
    embed_pictures(pictures, large, FeatureCache(None))
    assert len(large.calls) == 1
