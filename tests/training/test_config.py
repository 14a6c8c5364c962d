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
        ("epochs", "'epochs' is not a setting; write key=value"),
        ("epochs=many", "epochs is 'many'; it must be int"),
        ("epochs=1.5", "epochs is 1.5; it must be int"),
        ("epochs=true", "epochs is True; it must be int"),
        ("epochs=0", "epochs is 0; it must be 1 or more"),
        ("batch_size=1", "batch_size is 1; it must be 2 or more"),
        ("seed=-1", "seed is -1; it must be 0 or more"),
        ("momentum=1", "momentum is 1; it must be below 1"),
        ("momentum=nan", "momentum is nan"),
        ("smallest_scale=0", "smallest_scale is 0; it must be in 0 .. 1"),
        ("precision=float16", "unknown precision 'float16'"),
        ("between_rates=cosin", "Did you mean 'cosine'?"),
        ("rates=0.1", "rates is 0.1; it must be a list of [epoch, rate]"),
        ("rates=[[1, 0.1]]", "points (epoch, rate) from epoch 0 on, in order"),
        ("rates=[[0, 0.1], [5, -1]]", "points (epoch, rate) from epoch 0 on, in order"),
        ("sizes=[[0, 28.5]]", "sizes is [[0, 28.5]]; it must be a list of [epoch, side], whole"),
        ("sizes=[[3, 28]]", "points (epoch, side) from epoch 0 on, in order"),
        ("flip=maybe", "flip is 'maybe'; it must be bool | None"),
    ],
)
def test_an_invalid_setting_is_reported(setting, message):
    with pytest.raises(OptionError) as error:
        read_config(settings=[setting])
    assert message in str(error.value)


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
    assert path.stem.endswith(config.backbone)


def test_there_are_committed_configurations():
    assert COMMITTED
