import itertools
from collections import Counter

import numpy as np
import pytest

from protorect.evaluation import draws
from protorect.evaluation.draws import draw_distinct

WAYS_TO_DRAW = [draws._swap, draws._shuffle]


@pytest.mark.parametrize("draw", WAYS_TO_DRAW)
def test_draws_are_distinct_and_below_the_size(draw):
    sizes = np.random.default_rng(0).integers(7, 30, size=500)
    drawn = draw(np.random.default_rng(1), sizes, 7)
    assert drawn.shape == (500, 7)
    assert (drawn >= 0).all()
    assert (drawn < sizes[:, None]).all()
    assert all(len(set(row)) == 7 for row in drawn.tolist())


@pytest.mark.parametrize("draw", WAYS_TO_DRAW)
def test_every_ordered_draw_is_equally_likely(draw):
    n, count = 4, 3
    drawn = draw(np.random.default_rng(2), np.full(48_000, n), count)
    seen = Counter(map(tuple, drawn.tolist()))
    assert set(seen) == set(itertools.permutations(range(n), count))
    expected = 48_000 / 24
    chi_square = sum((times - expected) ** 2 / expected for times in seen.values())
    assert chi_square < 49.7  # 0.999 quantile with 23 degrees of freedom


@pytest.mark.parametrize("draw", WAYS_TO_DRAW)
def test_a_size_below_the_count_gives_all_there_is_first(draw):
    drawn = draw(np.random.default_rng(3), np.full(200, 5), 9)
    assert all(sorted(row[:5]) == [0, 1, 2, 3, 4] for row in drawn.tolist())


def test_many_draws_keep_memory_bounded(monkeypatch):
    monkeypatch.setattr(draws, "_BLOCK", 300)  # several blocks
    drawn = draw_distinct(np.random.default_rng(4), np.full(10, 100), 80)
    assert drawn.shape == (10, 80)
    assert all(len(set(row)) == 80 for row in drawn.tolist())
