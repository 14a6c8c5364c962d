"""Fine-tuning of a whole network against a slow reference implementation, and its contract."""

import copy

import pytest
import torch
from torch import nn

from protorect import METHODS, OptionError
from protorect.backbones.cosine_classifier import CosineClassifier
from protorect.methods import PICTURE_METHODS, chosen_with_pictures
from reference import fine_tuning

TFT = PICTURE_METHODS["tft"]
WAYS, SHOT, QUERIES = 3, 2, 7
LARGE = {"iterations": 6, "learning_rate": 0.02, "scale": 4.0, "entropy": 0.6}
ALL_AT_ONCE = 100


def task(side=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(WAYS).repeat(SHOT)
    shape = (WAYS * SHOT + QUERIES, 1, side, side)
    pictures = torch.randn(shape, generator=generator, dtype=torch.float64)
    return pictures[: len(labels)], labels, pictures[len(labels) :]


def small_network(seed=0):
    """A convolution, batch norm and ReLU, with statistics that are not those of the task."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())
    network.append(nn.Flatten()).double()
    norm = network[1]
    for values in (norm.weight.data, norm.running_var):
        values.uniform_(0.5, 2)
    for values in (norm.bias.data, norm.running_mean):
        values.normal_()
    return network


def parts_of(network):
    conv, norm = network[0], network[1]
    parts = {"kernel": conv.weight, "gain": norm.weight, "offset": norm.bias}
    parts |= {"mean": norm.running_mean, "variance": norm.running_var}
    return {name: values.detach().clone() for name, values in parts.items()}


@pytest.mark.parametrize("statistics", ["training", "task"])
@pytest.mark.parametrize("options", [{}, LARGE, LARGE | {"entropy": 0.0}, {"iterations": 0}])
def test_agrees_with_the_reference(options, statistics):
    network, (support, labels, query) = small_network(), task()
    options = options | {"statistics": statistics}
    expected = fine_tuning.tft(parts_of(network), support, labels, query, WAYS, **options)
    logits = TFT.with_options(**options)(network, support, labels, query, ALL_AT_ONCE)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("updates", ["together", "separate"])
@pytest.mark.parametrize("statistics", ["training", "task"])
@pytest.mark.parametrize("layer", ["features", "logits"])
def test_the_form_of_its_authors_agrees_with_the_reference(layer, updates, statistics):
    network, (support, labels, query) = small_network(), task()
    start = parts_of(network)
    if layer == "logits":
        classifier = CosineClassifier(4 * 3 * 3, 11).double()
        start |= {"base": classifier.weight.detach().clone(), "tau": classifier.scale.detach()}
        network = nn.Sequential(network, classifier, nn.ReLU())
    options = LARGE | {"layer": layer, "updates": updates, "statistics": statistics}
    expected = fine_tuning.tft(start, support, labels, query, WAYS, **options)
    logits = TFT.with_options(**options)(network, support, labels, query, ALL_AT_ONCE)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-8)


def test_every_option_has_an_effect():
    network, pictures = small_network(), task()
    methods = [TFT.with_options(**LARGE)]
    methods += [
        methods[0].with_options(**one)
        for one in ({"iterations": 5}, {"statistics": "task"}, {"updates": "separate"})
    ]
    logits = [one(network, *pictures, ALL_AT_ONCE) for one in methods]
    for other in logits[1:]:
        assert (logits[0] - other).abs().max() > 1e-3


@pytest.mark.parametrize("batch_size", [1, 4, 6])
def test_logits_do_not_depend_on_the_pictures_per_pass(batch_size):
    network, pictures = small_network(), task()
    chosen = TFT.with_options(**LARGE)
    expected = chosen(network, *pictures, ALL_AT_ONCE)
    torch.testing.assert_close(chosen(network, *pictures, batch_size), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("options", [{}, LARGE])
def test_a_network_without_weights_is_tft_head(options):
    support, labels, query = task()
    head = METHODS["tft-head"].with_options(**options)
    expected = head(support.flatten(1)[None], labels, query.flatten(1)[None])[0]
    logits = TFT.with_options(**options)(nn.Flatten(), support, labels, query, ALL_AT_ONCE)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("statistics", ["training", "task"])
def test_the_network_is_not_changed(statistics):
    network, pictures = small_network().insert(0, nn.Dropout(0.5)).train(), task()
    before = copy.deepcopy(network.state_dict())
    chosen = TFT.with_options(**LARGE, statistics=statistics)
    first = chosen(network, *pictures, ALL_AT_ONCE)
    assert torch.equal(chosen(network, *pictures, ALL_AT_ONCE), first)  # and no dropout
    assert all(torch.equal(before[name], values) for name, values in network.state_dict().items())
    assert all(layer.training for layer in network.modules())
    assert all(weight.grad is None for weight in network.parameters())


def test_black_pictures_give_finite_logits():
    support, labels, query = task()
    network = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.Flatten()).double()
    support[0], query[:3] = 0, 0
    assert TFT(network, support, labels, query, ALL_AT_ONCE).isfinite().all()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tft:statistics=tasks", "unknown statistics 'tasks'. Did you mean 'task'?"),
        ("tft:iterations=-1", "iterations is -1; it must be a whole number from 0 up"),
        ("tft:learning_rate=x", "learning_rate=x: a number is expected"),
        ("tft:rate=1", "unknown option of tft 'rate'"),
    ],
)
def test_an_invalid_option_is_refused(spec, message):
    with pytest.raises(OptionError, match=message.replace("?", r"\?")):
        chosen_with_pictures([spec])


def test_all_with_pictures_is_every_method():
    assert chosen_with_pictures(["all"]) == [*METHODS.values(), *PICTURE_METHODS.values()]
