import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from protorect import DataError, OptionError, load_features
from protorect._utils.checkpoint import load_tensors, save_tensors
from protorect.backbones.inference import embed
from protorect.backbones.preprocessing import Preprocessing
from protorect.backbones.registry import build
from protorect.cli import main
from protorect.datasets.packed import PackedDataset
from protorect.embedding.extract import extract
from protorect.training.config import TrainingConfig
from protorect.training.loop import train

QUICK = TrainingConfig(epochs=1, batch_size=64, validation_episodes=5, precision="float32")


@pytest.fixture(scope="module")
def run(packed, tmp_path_factory):
    return train(packed, tmp_path_factory.mktemp("runs") / "run", QUICK).folder


def test_features_are_those_of_the_network(run, packed, tmp_path):
    assert extract(run, packed, tmp_path / "f.npz", precision="float32").written
    features, labels = load_features(tmp_path / "f.npz")
    data = PackedDataset.open(packed)
    split = data.split("test")
    weights, card = load_tensors(run / "best.safetensors")
    network = build("conv64", channels=3, size=28)
    network.load_state_dict({name: weights[name] for name in network.state_dict()})
    pictures = torch.from_numpy(np.array(split.images[:7])).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(card[name])[:, None, None] for name in ("mean", "std"))
    with torch.inference_mode():
        expected = network.eval()((pictures - mean) / std)
    np.testing.assert_allclose(features[:7], expected, atol=1e-4)
    assert labels.tolist() == [split.class_names[label] for label in split.labels]


def test_the_command_writes_features_that_can_be_evaluated(
    run, packed, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(["extract", str(run), str(packed), "--split", "val", "--out", "f.npz"]) == 0
    assert capsys.readouterr().out.strip() == "f.npz"
    assert main(["evaluate", "f.npz", "--method", "cspn", "--episodes", "9", "--shot", "1"]) == 0


def test_existing_features_are_not_made_again_or_replaced_by_others(run, packed, tmp_path):
    out = tmp_path / "f.npz"
    assert extract(run, packed, out).written
    before = out.stat().st_mtime_ns
    assert not extract(run, packed, out).written
    assert out.stat().st_mtime_ns == before
    with pytest.raises(DataError, match="another origin: split, pictures differ"):
        extract(run, packed, out, split="val")
    other = tmp_path / "other"
    shutil.copytree(run, other)
    weights, card = load_tensors(run / "best.safetensors")
    name = "blocks.0.0.weight"
    save_tensors(other / "best.safetensors", weights | {name: weights[name] + 1}, card)
    with pytest.raises(DataError, match="another origin: weights differs"):
        extract(other, packed, out)
    np.savez(out, features=np.zeros((1, 1)), labels=[0])
    with pytest.raises(DataError, match="no record of its origin"):
        extract(run, packed, out)


def test_weights_may_be_a_file(run, packed, tmp_path):
    shutil.copy(run / "best.safetensors", tmp_path / "mine.safetensors")
    extract(tmp_path / "mine.safetensors", packed, tmp_path / "f.npz")
    extract(run, packed, tmp_path / "g.npz")
    assert (load_features(tmp_path / "f.npz")[0] == load_features(tmp_path / "g.npz")[0]).all()


def test_a_folder_of_class_folders_needs_no_preparation(run, tmp_path, capsys):
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(3):
            pixels = rng.integers(0, 255, (40, 50, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pets" / name / f"{number}.png")
    (tmp_path / "pets" / "cat" / "broken.jpg").write_text("no picture")
    out = tmp_path / "f.npz"
    assert main(["extract", str(run), str(tmp_path / "pets"), "--out", str(out)]) == 0
    assert "cat/broken.jpg" in capsys.readouterr().err
    features, labels = load_features(out)
    assert features.shape == (6, 64)
    assert labels.tolist() == ["cat"] * 3 + ["dog"] * 3


def test_channels_are_converted_to_those_of_the_network():
    gray = torch.rand(2, 1, 28, 28)
    pictures = (gray.expand(-1, 3, -1, -1) * 255).byte().permute(0, 2, 3, 1).numpy()
    for channels, stored in ((1, pictures), (3, pictures[..., :1])):
        network = build("conv64", channels=channels, size=28)
        same = pictures[..., :1] if channels == 1 else pictures
        plain = Preprocessing((0.0,) * channels, (1.0,) * channels)
        np.testing.assert_allclose(
            embed(network, stored, plain), embed(network, same, plain), atol=1e-5
        )


def test_pictures_are_resized_for_a_pretrained_network(packed, tmp_path, monkeypatch):
    split = PackedDataset.open(packed).split("test")
    few = type(split)(split.images[:3], split.labels[:3], split.class_names, split.digest)
    monkeypatch.setattr(PackedDataset, "split", lambda *_: few)
    assert extract("efficientnet-lite0", packed, tmp_path / "f.npz").written
    assert load_features(tmp_path / "f.npz")[0].shape == (3, 1280)


def test_unusable_sources_are_refused(run, packed, tmp_path):
    out = tmp_path / "f.npz"
    with pytest.raises(OptionError, match="Did you mean 'efficientnet-lite2'"):
        extract("efficientnet-lite", packed, out)
    with pytest.raises(OptionError, match="conv64 has no trained weights; train it first"):
        extract("conv64", packed, out)
    with pytest.raises(DataError, match="there is no file"):
        extract(tmp_path, packed, out)
    weights, card = load_tensors(run / "best.safetensors")
    save_tensors(tmp_path / "a.safetensors", weights, card | {"backbone": "conv256"})
    differs = r"does not fit conv256: .*is \(64, 64, 3, 3\) instead of \(96, .* and \d+ more"
    with pytest.raises(DataError, match=differs):
        extract(tmp_path / "a.safetensors", packed, out)
    save_tensors(tmp_path / "b.safetensors", weights, {"kind": "backbone"})
    with pytest.raises(DataError, match="does not say which backbone it is"):
        extract(tmp_path / "b.safetensors", packed, out)
    assert not Path(out).exists()
