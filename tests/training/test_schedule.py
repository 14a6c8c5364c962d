import numpy as np
import pytest

from protorect import OptionError
from protorect.backbones.registry import build
from protorect.training.config import TrainingConfig
from protorect.training.schedule import (
    batch_rows,
    check_sizes,
    derived_seed,
    learning_rate,
    picture_size,
    steps_per_epoch,
)

CYCLE = ((0, 0.1), (3, 1.0), (12, 0.0))
LINEAR = TrainingConfig(rates=CYCLE, between_rates="linear")
COSINE = TrainingConfig(rates=CYCLE, between_rates="cosine")


@pytest.mark.parametrize(
    ("epoch", "rate"),
    [(0, 0.1), (9.99, 0.1), (10, 0.01), (39.5, 0.001), (40, 1e-4), (60, 1e-4)],
)
def test_the_paper_holds_a_rate_until_the_next(epoch, rate):
    assert learning_rate(TrainingConfig(), epoch) == rate


@pytest.mark.parametrize(
    ("epoch", "rate"), [(0, 0.1), (1.5, 0.55), (3, 1.0), (7.5, 0.5), (12, 0.0), (15, 0.0)]
)
def test_a_linear_cycle_rises_and_falls(epoch, rate):
    assert learning_rate(LINEAR, epoch) == pytest.approx(rate)


def test_cosine_passes_through_the_same_points_and_is_flat_there():
    assert learning_rate(COSINE, 3) == 1.0
    assert learning_rate(COSINE, 7.5) == pytest.approx(0.5)
    assert learning_rate(COSINE, 3.1) > learning_rate(LINEAR, 3.1)


def test_an_epoch_uses_every_image_once():
    config = TrainingConfig(batch_size=32)
    rows = list(batch_rows(100, config, epoch=0))
    assert len(rows) == steps_per_epoch(100, config) == 3
    assert sorted(np.concatenate(rows)) == list(range(100))
    other = list(batch_rows(100, config, epoch=1))
    assert not np.array_equal(rows[0], other[0])


def test_pictures_left_over_from_the_whole_batches_make_them_larger():
    sizes = [len(rows) for rows in batch_rows(511, TrainingConfig(batch_size=256), 0)]
    assert sizes == [511]
    sizes = [len(rows) for rows in batch_rows(515, TrainingConfig(batch_size=256), 0)]
    assert sizes == [258, 257]


def test_steps_per_epoch_may_use_the_images_several_times():
    config = TrainingConfig(batch_size=64, steps_per_epoch=9)
    rows = list(batch_rows(100, config, epoch=0))
    assert [len(step) for step in rows] == [64] * 9
    _, counts = np.unique(np.concatenate(rows), return_counts=True)
    assert set(counts) == {5, 6}


def test_seeds_differ_by_position_and_process():
    positions = [(epoch, step) for epoch in (0, 1) for step in (0, 1)]
    seeds = {derived_seed(0, *position, rank=rank) for position in positions for rank in (0, 1)}
    assert len(seeds) == 8


def test_the_first_process_has_the_seeds_of_a_single_process():
    """Resuming a run of an earlier version needs the same numbers."""
    expected = int(np.random.SeedSequence([7, 1, 2]).generate_state(1, np.uint64)[0] >> 1)
    assert derived_seed(7, 1, 2, rank=0) == derived_seed(7, 1, 2) == expected


def test_pictures_grow_at_the_epochs_of_the_recipe():
    config = TrainingConfig(sizes=((0, 42), (8, 64), (12, 84)))
    assert [picture_size(config, epoch, 84) for epoch in (0, 7, 8, 11, 12, 59)] == [
        *(42, 42, 64, 64, 84, 84)
    ]
    assert picture_size(TrainingConfig(), 3, 84) == 84


@pytest.mark.parametrize(
    ("backbone", "sizes", "message"),
    [
        ("conv64", ((0, 84),), "conv64 takes pictures of one size only"),
        ("resnet12", ((0, 42),), "the last and largest 84"),
        ("resnet12", ((0, 96), (3, 84)), "the sides 96, 84"),
        ("resnet12", ((0, 20), (3, 84)), "they must be 28 or more"),
    ],
)
def test_sizes_that_do_not_fit_the_network_are_refused(backbone, sizes, message):
    with pytest.raises(OptionError, match=message):
        check_sizes(TrainingConfig(sizes=sizes), build(backbone, size=84))
