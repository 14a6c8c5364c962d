from dataclasses import replace

from protorect.paper.own_tables import further_runs, not_in_paper, same_network, side_by_side
from protorect.paper.published import published_tables
from protorect.paper.record import Measurement

ONE = Measurement("omniglot", "conv64", "bd-cspn", 5, 1, 15, 600, 99.70, 0.10, "8")
MINI = Measurement("mini-imagenet", "conv64", "cspn", 5, 1, 15, 600, 52.0, 0.8)
TABLE = [published_tables()[12]]


def by_key(*measured):
    return {(one.key, one.shot): one for one in measured}


def test_numbers_not_in_the_paper_are_shown_with_their_gain():
    at = [replace(ONE, way=20, shot=k) for k in (1, 5)]
    plain = [replace(one, method="cspn", value=98.0, z=None) for one in at]
    (table,) = not_in_paper([*plain, *at], TABLE, by_key(*plain, *at))
    assert table.caption == "Measured here, not in the paper, Omniglot, ConvNet-64."
    assert [row[0] for row in table.rows] == ["CSPN", "BD-CSPN, Z chosen"]
    assert table.rows[1][1:3] == ["99.70 ± 0.10, Z = 8", "+1.70"]
    fewer = [replace(one, episodes=20) for one in at]  # not the episodes of CSPN
    (table,) = not_in_paper([*plain, *fewer], TABLE, by_key(*plain, *fewer))
    assert table.rows[1][1:3] == ["99.70 ± 0.10, Z = 8", ""]
    printed = [replace(one, way=200) for one in at]
    assert not_in_paper(printed, TABLE, by_key(*printed)) == []


def test_systems_with_the_same_network_are_ordered_by_accuracy():
    rectified = replace(MINI, method="bd-cspn", value=57.5, z="8")
    (table,) = same_network("mini-imagenet", by_key(MINI, rectified))
    names = [row[0] for row in table.rows]
    assert names[0] == "Matching Network"
    assert names.index("CSPN") < names.index("TPN") < names.index("BD-CSPN, Z chosen")
    assert table.rows[-1] == ["BD-CSPN", "published", "60.48", "75.02"]
    assert ["CSPN", "measured here", "52.00 ± 0.80", "–"] in table.rows
    assert same_network("tiered-imagenet", by_key(MINI)) == []


def test_two_versions_of_a_data_set_side_by_side():
    cropped = replace(MINI, dataset="cub", value=63.7)
    whole = replace(MINI, dataset="cub-whole", value=58.5)
    (table,) = side_by_side(("cub", "cub-whole"), by_key(cropped, whole))
    assert table.header[1:4] == ["1-shot published", "CUB", "CUB, whole pictures"]
    assert table.rows == [
        ["CSPN", "64.72", "63.70 ± 0.80", "58.50 ± 0.80", "84.21", "–", "–"],
    ]
    assert side_by_side(("cub", "cub-whole"), by_key(MINI)) == []


def test_further_runs_are_compared_with_the_main_one():
    runs = [
        replace(MINI, shot=shot, run=run, value=value)
        for shot in (1, 5)
        for run, value in (("", 52.0), ("seed1", 54.0), ("paper", 40.0))
    ]
    one, _ = further_runs(runs)
    assert one.header[1:4] == ["seed 0", "seed 1", "settings that the paper states"]
    row = ["CSPN", "52.00 ± 0.80", "54.00 ± 0.80", "40.00 ± 0.80", "53.00, 1.41"]
    assert one.rows == [row]
    assert further_runs([MINI]) == []
