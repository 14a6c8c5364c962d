from pathlib import Path

import pytest

from protorect import DataError, OptionError
from protorect.backbones.registry import BACKBONES
from protorect.training.config import TrainingConfig, read_config

COMMITTED = sorted((Path(__file__).parents[2] / "configs").glob("*.toml"))


def test_defaults_are_the_papers_recipe():
    config = TrainingConfig()
    assert (config.epochs, config.momentum, config.weight_decay) == (60, 0.9, 5e-4)
    assert config.rates == ((0, 0.1), (10, 0.01), (20, 0.001), (40, 0.0001))
    assert config.between_rates == "hold"


def test_a_file_changes_the_defaults_and_settings_change_the_file(tmp_path):
    path = tmp_path / "fast.toml"
    path.write_text(
        "epochs = 12\nbatch_size = 64\n"
        'between_rates = "linear"\nrates = [[0, 0.01], [4, 0.2], [12, 0]]\n'
    )
    config = read_config(
        path, ["epochs=3", "flip=true", "steps_per_epoch=none", "backbone=conv128"]
    )
    assert (config.epochs, config.batch_size, config.flip) == (3, 64, True)
    assert config.rates == ((0, 0.01), (4, 0.2), (12, 0))
    assert config.steps_per_epoch is None
    assert config.backbone == "conv128"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("epoch=3", "unknown setting 'epoch'. Did you mean 'epochs'?"),
        ("epochs", "'epochs' is no setting; write name=value, as in backbone=conv64"),
        ("epochs=many", "epochs=many: a whole number is expected"),
        ("epochs=1.5", "epochs=1.5: a whole number is expected"),
        ("epochs=true", "epochs=true: a whole number is expected"),
        ("epochs=none", "epochs=none: a whole number is expected"),
        ("epochs=0", "epochs is 0; it must be a whole number from 1 up"),
        ("steps_per_epoch=0", "steps_per_epoch is 0; it must be a whole number from 1 up or None"),
        ("batch_size=1", "batch_size is 1; it must be a whole number from 2 up"),
        ("seed=-1", "seed is -1; it must be a whole number in 0 .."),
        ("momentum=1", "momentum is 1.0; it must lie in 0 .. 1, excluding 1"),
        ("momentum=nan", "momentum is nan; it must lie in 0 .. 1"),
        ("weight_decay=inf", "weight_decay is inf; it must lie in 0 .. 1e+06"),
        ("smallest_scale=0", "smallest_scale is 0.0; it must lie in 0 .. 1, excluding 0"),
        ("colour=1", "color is 1.0; it must lie in 0 .. 1, excluding 1"),
        ("backbone=conv65", "unknown backbone 'conv65'. Did you mean 'conv64'?"),
        ("precision=float16", "unknown precision 'float16'"),
        ("between_rates=cosin", "Did you mean 'cosine'?"),
        ("rates=0.1", "rates is 0.1; it must be a list of [epoch, rate]"),
        ("rates=[", "rates=[: a list such as [[epoch, rate], ...] is expected"),
        ("rates=[]", "rates is empty; give a learning rate from epoch 0 on"),
        ("rates=[[1, 0.1]]", "its epochs must begin with 0 and ascend"),
        ("rates=[[0, 0.1], [9, 1], [5, 1]]", "its epochs must begin with 0 and ascend"),
        ("rates=[[0, 0.1], [5, -1]]", "must be a list of [epoch, rate], numbers from 0 up"),
        ("sizes=[[0, 28.5]]", "sizes is [[0, 28.5]]; it must be a list of [epoch, side], whole"),
        ("sizes=[[3, 28]]", "its epochs must begin with 0 and ascend"),
        ("flip=maybe", "flip=maybe: true, false or none is expected"),
    ],
)
def test_an_invalid_setting_is_reported(setting, message):
    with pytest.raises(OptionError) as error:
        read_config(settings=[setting])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochs = true", "epochs is True; it must be a whole number from 1 up"),
        ("epochs = 1.5", "epochs is 1.5; it must be a whole number from 1 up"),
        ("momentum = true", "momentum is True; it must lie in 0 .. 1, excluding 1"),
        ("flip = 1", "flip is 1; it must be true, false or None"),
        ("precision = 16", "unknown precision '16'"),
        ("[epochs]", "epochs is {}; it must be a whole number from 1 up"),
        ("seed = 99999999999999999999", "seed is 99999999999999999999; it must be a whole number"),
    ],
)
def test_a_value_of_the_wrong_type_in_a_file_is_reported(tmp_path, text, message):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(OptionError) as error:
        read_config(tmp_path / "bad.toml")
    assert message in str(error.value)


def test_an_earlier_name_is_understood_in_files_and_settings(tmp_path):
    (tmp_path / "old.toml").write_text("colour = 0.3")
    assert read_config(tmp_path / "old.toml").color == 0.3
    assert read_config(tmp_path / "old.toml", ["colour=0.2"]).color == 0.2
    assert read_config(tmp_path / "old.toml", ["color=0.1"]).color == 0.1


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="cannot read .*none.toml: No such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("epochs = ")
    with pytest.raises(DataError, match="bad.toml is not a TOML file"):
        read_config(tmp_path / "bad.toml")


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_committed_configuration_is_valid(path):
    config = read_config(path)
    assert config.backbone in BACKBONES
    assert path.stem.removesuffix("-paper").endswith(config.backbone)


def test_there_are_committed_configurations():
    assert COMMITTED
