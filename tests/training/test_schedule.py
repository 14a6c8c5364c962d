import pytest

from protorect.training.config import TrainingConfig
from protorect.training.schedule import rate_at

PAPER = TrainingConfig().rates
CYCLE = ((0, 0.1), (3, 1.0), (12, 0.0))


@pytest.mark.parametrize(
    ("epoch", "rate"),
    [(0, 0.1), (9.99, 0.1), (10, 0.01), (39.5, 0.001), (40, 1e-4), (60, 1e-4)],
)
def test_the_paper_holds_a_rate_until_the_next(epoch, rate):
    assert rate_at(epoch, PAPER, "hold") == rate


@pytest.mark.parametrize(
    ("epoch", "rate"), [(0, 0.1), (1.5, 0.55), (3, 1.0), (7.5, 0.5), (12, 0.0), (15, 0.0)]
)
def test_a_cycle_goes_up_and_down(epoch, rate):
    assert rate_at(epoch, CYCLE, "linear") == pytest.approx(rate)


def test_cosine_meets_the_same_points_with_level_ends():
    assert rate_at(3, CYCLE, "cosine") == 1.0
    assert rate_at(7.5, CYCLE, "cosine") == pytest.approx(0.5)
    assert rate_at(3.1, CYCLE, "cosine") > rate_at(3.1, CYCLE, "linear")
