from dataclasses import replace

import pytest

from protorect.paper.published import Value, published_tables
from protorect.paper.record import Measurement
from protorect.paper.tables import (
    agreement,
    agreement_counts,
    comparison,
    rank,
    ranks,
    signed,
    value_text,
)

ONE = Measurement("omniglot", "conv64", "bd-cspn", 5, 1, 15, 600, 99.70, 0.10, "8")


def by_key(*measured):
    return {(one.key, one.shot): one for one in measured}


@pytest.mark.parametrize(
    ("printed", "measured", "expected"),
    [
        (Value(70.0), Value(70.4, 0.5), "within"),
        (Value(70.0), Value(70.6, 0.5), "above"),
        (Value(70.0), Value(69.4, 0.5), "below"),
        (Value(70.0, 0.4), Value(70.6, 0.5), "within"),  # both intervals count
        (Value(70.0), Value(70.1, None), "above"),
    ],
)
def test_whether_a_number_agrees(printed, measured, expected):
    assert agreement(printed, measured) == expected


def test_a_table_of_the_paper_beside_what_was_measured():
    classes = replace(ONE, method="bd-cspn-classes", value=99.55, z="all")
    table = comparison(published_tables()[6], by_key(ONE, classes))
    assert table.header[1:4] == ["1-shot published", "measured", "difference"]
    rows = {row[0]: row[1:] for row in table.rows}
    chosen = "BD-CSPN, Z chosen, ConvNet-64"
    assert rows[chosen][:3] == ["99.62", "99.70 ± 0.10, Z = 8", "+0.08 within"]
    assert rows[chosen][3:] == ["99.76", "–", ""]
    row = rows["BD-CSPN (classes), Z chosen, ConvNet-64"]
    assert row[1:3] == ["99.55 ± 0.10, Z = all", "-0.07 within"]
    assert rows["BD-CSPN, WRN-28-10"] == ["99.08", "–", "", "99.85", "–", ""]
    assert len(rows) == 11


def test_the_papers_z_and_the_chosen_one_have_a_row_each():
    fixed = replace(ONE, method="bd-cspn:z=8", value=99.5, z=None)
    table = comparison(published_tables()[6], by_key(ONE, fixed))
    rows = {row[0]: row[2] for row in table.rows}
    assert rows["BD-CSPN, Z = 8, ConvNet-64"] == "99.50 ± 0.10"
    assert rows["BD-CSPN, Z chosen, ConvNet-64"] == "99.70 ± 0.10, Z = 8"


def test_another_network_takes_the_place_of_the_widest_and_the_row_says_so():
    cspn = Measurement("mini-imagenet", "conv64", "cspn", 5, 1, 15, 600, 52.0, 0.8)
    rectified = replace(cspn, method="bd-cspn:z=8", value=56.5)
    table = comparison(published_tables()[4], by_key(cspn, rectified))
    rows = {row[0]: row[1:4] for row in table.rows}
    name = "BD-CSPN, Z = 8, miniImageNet (here ConvNet-64)"
    assert rows[name] == ["70.31", "56.50 ± 0.80", "+4.50 (published +8.47)"]
    assert rows["CSPN, miniImageNet (here ConvNet-64)"] == ["61.84", "52.00 ± 0.80", ""]
    assert rows["BD-CSPN, tieredImageNet"][1] == "–"
    assert 'Where a row says "here"' in table.caption
    # Table 7 has rows of its own for every network.
    birds = comparison(published_tables()[7], by_key(replace(cspn, dataset="cub")))
    assert not any("here" in row[0] for row in birds.rows)


def test_with_distractors_the_change_is_that_from_none():
    none = Measurement("mini-imagenet", "conv64", "bd-cspn:z=8", 5, 1, 15, 600, 56.0, 0.8)
    one = replace(none, distractors=1, value=54.0)
    table = comparison(published_tables()[13], by_key(none, one))
    rows = {row[0]: row[3] for row in table.rows}
    name = "BD-CSPN, Z = 8, N' = 1, accuracy (here ConvNet-64)"
    assert rows[name] == "-2.00 (published -3.43)"


def test_a_table_that_was_not_measured_has_the_published_numbers_alone():
    table = comparison(published_tables()[1], {})
    assert table.header == ["system", "1-shot published", "5-shot published"]
    assert table.rows[0] == [
        "Matching Network, ConvNet-64 (inductive)",
        "43.56 ± 0.84",
        "55.31 ± 0.73",
    ]
    assert table.rows[2][0].endswith("(inductive)¹")
    assert "¹ Trained on training and validation set." in table.caption
    assert "not to be had" not in table.caption
    for number in (2, 9, 11):
        assert (
            "pictures are not to be had here" in comparison(published_tables()[number], {}).caption
        )
    assert comparison(published_tables()[3], {}).header == ["system", "5-shot published"]


def test_agreement_counts_each_printed_number_once():
    assert agreement_counts(by_key(ONE), "bd-cspn") == {"within": 1}
    below = replace(ONE, method="bd-cspn-classes", value=90.0)
    assert agreement_counts(by_key(ONE, below), "bd-cspn-classes") == {"below": 1}


def test_ranks_as_printed_and_as_computed():
    task = ("bd-cspn", 5, 5, 15, 600, 68.7, 0.5)
    birds = Measurement("meta-cu-birds", "wrn28-10", *task, trained_on="meta-ilsvrc-2012")
    assert rank("meta-cu-birds", 68.7) == 2
    text, table = ranks(published_tables()[14], by_key(birds))
    assert "states an average rank of 1.9" in text
    assert "average 2.1" in text
    assert "average rank of 2.7: on Textures" in text
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["Birds"] == ["3", "3", "2 (68.70)", "–"]
    for other in (None, "mini-imagenet"):  # another protocol than the paper's
        _, table = ranks(published_tables()[14], by_key(replace(birds, trained_on=other)))
        assert table.rows[3] == ["Birds", "3", "3", "–", "–"]
    assert rows["mean"] == ["2.1", "2.7", "2.0, of 1", "–"]


def test_numbers_are_shown_as_in_the_paper():
    assert value_text(Value(70.1, 1.9)) == "70.10 ± 1.90"
    assert value_text(Value(70.1)) == "70.10"
    assert [signed(x) for x in (0.144, -0.001, -0.02)] == ["+0.14", "+0.00", "-0.02"]
