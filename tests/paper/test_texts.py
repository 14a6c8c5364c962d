from protorect.paper.published import Key
from protorect.paper.texts import common_names, row_names


def test_row_names_show_the_fields_that_differ():
    keys = [Key("omniglot", "conv64", "cspn", way) for way in (10, 200)]
    assert row_names(keys) == ["CSPN, 10-way", "CSPN, 200-way"]
    assert row_names(keys[:1]) == ["CSPN"]


def test_common_names_are_the_data_set_and_backbone_of_all_keys():
    keys = [Key("omniglot", "conv64", "cspn"), Key("cub", "conv64", "cspn")]
    assert common_names(keys) == ["ConvNet-64"]
    assert common_names(keys[:1]) == ["Omniglot", "ConvNet-64"]
    assert common_names([Key("meta-cu-birds", None, "cspn")]) == ["Birds"]
