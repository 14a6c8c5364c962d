import pytest
import torch

from protorect.training.augmentation import Augmentation, Batch


def drawn(seed=0):
    return torch.Generator().manual_seed(seed)


def pictures(n=50, channels=3, side=12, seed=9):
    return torch.rand(n, channels, side, side, generator=drawn(seed))


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
    moved = Augmentation(crop_padding=2, flip=True)(images, drawn())
    found = []
    for before, after in zip(images, moved, strict=True):
        places = [place for place, crop in windows(before, 2) if torch.equal(crop, after)]
        assert len(places) == 1
        found += places
    assert len(set(found)) > 20
    assert 10 < sum(mirrored for *_, mirrored in found) < 40


def test_without_a_wish_nothing_changes():
    images = pictures()
    assert torch.equal(Augmentation()(images, drawn()), images)


@pytest.mark.parametrize(
    "augment",
    [
        Augmentation(crop_padding=3),
        Augmentation(flip=True),
        Augmentation(smallest_scale=0.5),
        Augmentation(colour=0.4),
        Augmentation(2, True, 0.6, 0.3),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_the_generator_decides_and_pictures_stay_pictures(augment, channels):
    images = pictures(channels=channels)
    kept = images.clone()
    first, again, other = (augment(images, drawn(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.shape == images.shape
    assert 0 <= first.min() <= first.max() <= 1 + 1e-6
    assert torch.equal(images, kept)


def test_a_zoomed_crop_of_a_ramp_shows_part_of_the_ramp():
    ramp = torch.linspace(0, 1, 64).expand(40, 1, 64, 64)
    zoomed = Augmentation(smallest_scale=0.5)(ramp, drawn())
    spans = zoomed[:, 0, 32, -1] - zoomed[:, 0, 32, 0]
    assert (spans > 0.45).all()
    assert (spans < 1.01).all()
    assert spans.std() > 0.05


def test_saturation_leaves_grey_pictures_grey():
    grey = pictures(channels=1).expand(-1, 3, -1, -1)
    coloured = Augmentation(colour=0.5)(grey, drawn())
    torch.testing.assert_close(coloured[:, 0], coloured[:, 1])


def test_the_parts_of_a_batch_fare_as_the_whole():
    images = torch.rand(7, 3, 12, 12, generator=drawn())
    augment = Augmentation(2, True, 0.6, 0.3)
    whole = augment(images, drawn())
    parts = [augment(images[part], drawn(), Batch(7, part)) for part in (slice(0, 3), slice(3, 7))]
    torch.testing.assert_close(torch.cat(parts), whole)
