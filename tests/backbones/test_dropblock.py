"""DropBlock: what it drops, how much of it, and that a checkpoint continues its schedule."""

from __future__ import annotations

import pytest
import torch

from protorect.backbones.dropblock import WARM_UP, DropBlock
from protorect.backbones.registry import build


def warmed_up(batches: int = WARM_UP, **options: float) -> DropBlock:
    drop = DropBlock(**options).train()
    drop.batches.fill_(batches)
    return drop


def dropped(drop: DropBlock, side: int, count: int = 200) -> torch.Tensor:
    torch.manual_seed(0)
    return drop(torch.ones(count, 32, side, side)) == 0


def test_evaluation_drops_nothing_and_counts_nothing():
    drop, maps = warmed_up().eval(), torch.randn(2, 3, 8, 8)
    assert torch.equal(drop(maps), maps)
    assert drop.batches == WARM_UP


@pytest.mark.parametrize("side", [5, 3, 1])
def test_a_map_no_larger_than_a_square_is_dropped_whole(side):
    gone = dropped(warmed_up(), side).flatten(2)
    assert torch.equal(gone.any(-1), gone.all(-1))
    assert gone.float().mean().item() == pytest.approx(0.1, abs=0.02)


def test_dropped_positions_lie_in_whole_squares():
    gone = dropped(warmed_up(), side=10).float()
    starts = torch.nn.functional.avg_pool2d(gone, 5, stride=1) == 1  # squares all gone
    covered = torch.zeros_like(gone)
    for i, j in [(i, j) for i in range(6) for j in range(6)]:
        covered[..., i : i + 5, j : j + 5] += starts[..., i : i + 1, j : j + 1]
    assert torch.equal(gone > 0, covered > 0)
    assert starts.any()


@pytest.mark.parametrize(
    ("batches", "share"), [(0, 0.0), (WARM_UP // 2, 0.05), (WARM_UP, 0.1), (9 * WARM_UP, 0.1)]
)
def test_the_dropped_share_grows_linearly_and_then_stays(batches, share):
    gone = dropped(warmed_up(batches), side=5, count=1000).float().mean().item()
    assert gone == pytest.approx(share, abs=0.006)  # five standard errors


def test_overlaps_reduce_the_share_only_little():
    assert dropped(warmed_up(), side=10).float().mean().item() == pytest.approx(0.1, abs=0.02)


def test_the_rest_is_rescaled():
    maps = torch.ones(50, 32, 10, 10)
    assert warmed_up()(maps).mean().item() == pytest.approx(1, abs=1e-4)


def test_everything_dropped_is_zero_and_not_nan():
    assert torch.equal(warmed_up(rate=1.0)(torch.ones(1, 2, 5, 5)), torch.zeros(1, 2, 5, 5))


def test_bfloat16_maps_stay_bfloat16():
    assert warmed_up()(torch.ones(2, 2, 5, 5, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_resnet12_drops_in_its_last_two_blocks_and_a_checkpoint_continues():
    torch.manual_seed(0)
    network, images = build("resnet12", size=28).train(), torch.rand(4, 3, 28, 28)
    counters = ["blocks.2.drop.batches", "blocks.3.drop.batches"]
    assert [key for key in network.state_dict() if key.endswith("drop.batches")] == counters
    with torch.no_grad():
        network(images)
        network.load_state_dict(
            {
                key: torch.tensor(20_000) if key in counters else value
                for key, value in network.state_dict().items()
            }
        )
        state = {key: value.clone() for key, value in network.state_dict().items()}
        torch.manual_seed(1)
        expected = network(images)
        resumed = build("resnet12", size=28).train()
        resumed.load_state_dict(state)
        torch.manual_seed(1)
        assert torch.equal(resumed(images), expected)
        fresh = build("resnet12", size=28).train()
        fresh.load_state_dict(state | dict.fromkeys(counters, torch.tensor(0)))
        torch.manual_seed(1)
        assert not torch.equal(fresh(images), expected)
    assert [int(network.state_dict()[key]) for key in counters] == [20_001, 20_001]
