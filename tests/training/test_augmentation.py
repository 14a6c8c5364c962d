import numpy as np
import pytest
import torch

from protorect.training.augmentation import Augmentation


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def pictures(n=50, channels=3, side=12, seed=9):
    return torch.rand(n, channels, side, side, generator=generator(seed))


def windows(image, padding):
    """Every crop of the padded picture, and every mirrored one."""
    padded = torch.nn.functional.pad(image, (padding,) * 4)
    side = image.shape[-1]
    for top in range(2 * padding + 1):
        for left in range(2 * padding + 1):
            crop = padded[:, top : top + side, left : left + side]
            yield (top, left, False), crop
            yield (top, left, True), crop.flip(-1)


def test_a_crop_is_a_window_of_the_padded_picture_and_each_picture_has_its_own():
    images = pictures()
    moved = Augmentation(crop_padding=2, flip=True)(images, generator())
    positions = []
    for before, after in zip(images, moved, strict=True):
        places = [place for place, crop in windows(before, 2) if torch.equal(crop, after)]
        assert len(places) == 1
        positions += places
    assert len(set(positions)) > 20


def test_half_of_the_images_are_mirrored():
    ramp = torch.linspace(0, 1, 8).expand(20_000, 1, 8, 8)
    flipped = Augmentation(flip=True)(ramp, generator())[:, 0, 0, 0] == 1
    assert 0.49 < flipped.float().mean() < 0.51  # four standard deviations are 0.014


def test_padded_crops_reach_every_position_equally_often():
    """The position of one white pixel: shifts of -2 .. 2 in both directions."""
    images = torch.zeros(5_000, 1, 7, 7)
    images[:, :, 3, 3] = 1
    moved = Augmentation(crop_padding=2)(images, generator())
    shares = moved.mean(dim=(0, 1))
    assert torch.equal(shares > 0, torch.nn.functional.pad(torch.ones(5, 5), (1,) * 4) > 0)
    torch.testing.assert_close(shares[1:6, 1:6], torch.full((5, 5), 1 / 25), rtol=0, atol=0.01)


def test_contrast_and_brightness_change_an_image_as_a_whole():
    """Gray values g become b * (c * g + (1 - c) * mean), so the mean is multiplied by b."""
    images = pictures(n=200, channels=1)
    changed = Augmentation(color=0.2)(0.3 + 0.2 * images, generator())
    slopes, means = [], []
    for before, after in zip(0.3 + 0.2 * images, changed, strict=True):
        slope, offset = np.polyfit(before.flatten(), after.flatten(), 1)
        np.testing.assert_allclose(slope * before + offset, after, atol=1e-5)
        slopes.append(slope)
        means.append((after.mean() / before.mean()).item())
    contrast = np.array(slopes) / np.array(means)
    for factor in (np.array(means), contrast):
        assert 0.8 <= factor.min() < 0.82
        assert 1.18 < factor.max() <= 1.2001
    assert abs(np.corrcoef(means, contrast)[0, 1]) < 0.2


def test_no_augmentation_changes_nothing():
    images = pictures()
    assert torch.equal(Augmentation()(images, generator()), images)


@pytest.mark.parametrize(
    "augment",
    [
        Augmentation(crop_padding=3),
        Augmentation(flip=True),
        Augmentation(smallest_scale=0.5),
        Augmentation(color=0.4),
        Augmentation(2, True, 0.6, 0.3),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_generator_determines_the_result_and_values_stay_in_range(augment, channels):
    images = pictures(channels=channels)
    original = images.clone()
    first, again, other = (augment(images, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.shape == images.shape
    assert 0 <= first.min() <= first.max() <= 1 + 1e-6
    assert torch.equal(images, original)


def test_a_zoomed_crop_of_a_ramp_shows_part_of_the_ramp():
    ramp = torch.linspace(0, 1, 64).expand(40, 1, 64, 64)
    zoomed = Augmentation(smallest_scale=0.5)(ramp, generator())
    spans = zoomed[:, 0, 32, -1] - zoomed[:, 0, 32, 0]
    assert (spans > 0.45).all()
    assert (spans < 1.01).all()
    assert spans.std() > 0.05
    centers = (zoomed[:, 0, 32, -1] + zoomed[:, 0, 32, 0]) / 2
    assert centers.min() < 0.4  # to either side
    assert centers.max() > 0.6


def test_saturation_leaves_grey_pictures_grey():
    grey = pictures(channels=1).expand(-1, 3, -1, -1)
    coloured = Augmentation(color=0.5)(grey, generator())
    torch.testing.assert_close(coloured[:, 0], coloured[:, 1])
