"""The transcription of the paper's tables.

It was compared with the source of the paper by a second, independent transcription that parses
every table: 216 numbers, no difference. The counts and sums below come from that transcription.
"""

from collections import Counter

import pytest

from protorect import METHODS
from protorect.backbones.registry import BACKBONES
from protorect.datasets.catalogue import DATASETS
from protorect.methods import PICTURE_METHODS
from protorect.paper.published import Key, Value, load_toml, published_tables, published_values

COUNTS = {1: 35, 2: 23, 3: 10, 4: 16, 5: 18, 6: 20, 7: 20, 8: 4, 9: 8, 10: 4, 11: 6, 12: 24}
COUNTS |= {13: 8, 14: 20}
SUM = 15967.01


def cells():
    """Key, shot and value of every printed number, table by table."""
    rows = [row for table in published_tables().values() for row in table.rows]
    return [(row.key, shot, value) for row in rows for shot, value in row.values.items()]


def test_counts_and_sums_are_those_of_the_second_transcription():
    counts = {
        number: sum(len(row.values) for row in table.rows)
        for number, table in published_tables().items()
    }
    assert counts == COUNTS
    assert sum(value.mean for _, _, value in cells()) == pytest.approx(SUM, abs=0.001)
    intervals = [value.ci95 for _, _, value in cells() if value.ci95 is not None]
    assert (len(intervals), sum(intervals)) == (56, pytest.approx(39.93, abs=0.001))


@pytest.mark.parametrize(
    ("table", "key", "shot", "value"),
    [
        (1, Key("mini-imagenet", "conv64", "Matching Network"), 1, Value(43.56, 0.84)),
        (1, Key("mini-imagenet", "wrn28-10", "bd-cspn"), 5, Value(81.89, 0.60)),
        (2, Key("tiered-imagenet", "conv256", "EGNN"), 5, Value(80.15)),
        (4, Key("tiered-imagenet", "wrn28-10", "bd-i"), 1, Value(78.12)),
        (5, Key("mini-imagenet", "conv64", "tft"), 1, Value(50.46)),
        (6, Key("omniglot", "wrn28-10", "bd-cspn"), 1, Value(99.08)),
        (7, Key("cub", "conv64", "bd-cspn"), 5, Value(87.25)),
        (9, Key("tiered-imagenet", "conv128", "bd-cspn"), 5, Value(79.57)),
        (11, Key("tiered-imagenet", "wrn28-10", "bd-cspn", way=50), 1, Value(31.67)),
        (12, Key("omniglot", "conv64", "bd-cspn", way=1000), 1, Value(71.18)),
        (13, Key("mini-imagenet", "wrn28-10", "bd-cspn", 5, 5, "map"), 5, Value(81.06)),
        (14, Key("meta-cu-birds", None, "bd-cspn"), 1, Value(49.41)),
    ],
)
def test_some_numbers(table, key, shot, value):
    rows = {row.key: row for row in published_tables()[table].rows}
    assert rows[key].values[shot] == value


def test_no_number_is_there_twice_in_a_table():
    for table in published_tables().values():
        assert max(Counter(row.key for row in table.rows).values()) == 1


def test_tables_that_print_the_same_number_agree():
    seen = {}
    for key, shot, value in cells():
        assert seen.setdefault((key, shot), value.mean) == value.mean
    assert {place: value.mean for place, value in published_values().items()} == seen


def test_the_drops_are_those_from_the_main_result():
    main = {
        shot: v.mean
        for key, shot, v in cells()
        if key == Key("mini-imagenet", "wrn28-10", "bd-cspn")
    }
    rows = load_toml("published.toml")["table"][12]["rows"]
    drops = [(row["one"][0], row["one_drop"], 1) for row in rows if "one_drop" in row]
    drops += [(row["five"][0], row["five_drop"], 5) for row in rows if "five_drop" in row]
    assert len(drops) == 4
    for value, drop, shot in drops:
        assert drop == pytest.approx(main[shot] - value)


def test_names_are_those_of_this_project():
    for key, _, _ in cells():
        assert key.dataset in DATASETS
        assert key.backbone in {*BACKBONES, "ConvNet-32", None}
    methods = {key.system for key, _, _ in cells() if key.system.islower()}
    assert methods <= set(METHODS | PICTURE_METHODS)


def test_compared_systems_have_their_citation():
    known = load_toml("published.toml")["citations"]
    for table in published_tables().values():
        for row in table.rows:
            assert (row.cite in known) == (row.key.system not in METHODS)


def test_the_printed_ranks_and_what_follows_from_the_numbers():
    table = published_tables()[14]
    printed = [row.rank for row in table.rows]
    assert sum(printed) / 10 == 2.1
    assert table.average_rank == 1.9
    board = load_toml("published.toml")["leaderboard"]
    assert len(board["systems"]) == 7
    systems = [dict(zip(board["columns"], row, strict=True)) for row in board["systems"].values()]
    ranks = [
        1 + sum(system[row.key.dataset] > row.values[5].mean for system in systems)
        for row in table.rows
    ]
    assert ranks == [1, 1, 7, 3, 7, 1, 1, 4, 1, 1]
