"""Every method has a page: title, source, assumptions and one text per option."""

import re

import pytest

from protorect.methods import METHODS, PICTURE_METHODS
from protorect.methods.description import about, method_text

EVERY_METHOD = METHODS | PICTURE_METHODS


@pytest.mark.parametrize("name", EVERY_METHOD)
def test_every_option_is_described(name):
    for option in EVERY_METHOD[name].options.parameters():
        assert len(option.description) > 10
        assert option.description.endswith(".")


@pytest.mark.parametrize("name", EVERY_METHOD)
def test_title_source_and_assumptions_are_given(name):
    title, source, *others = about(EVERY_METHOD[name])
    assert title.endswith(".")
    assert re.search(r"\b(19|20)\d\d\b", source)
    assert any(paragraph.startswith("Assumes") for paragraph in others)
    assert EVERY_METHOD[name].summary[0].islower()


@pytest.mark.parametrize("name", METHODS)
def test_the_text_says_what_fit_can_do(name):
    method, text = METHODS[name], " ".join(method_text(METHODS[name]).split())
    assert ("It has a rule for new samples." in text) == method.has_rule
    assert ("It has no rule for new samples." in text) != method.has_rule
    ignored = text.partition("It ignores ")[2].partition(".")[0]
    assert ("`prior`" in ignored) != method.uses_prior
    assert ("`previous`" in ignored) != method.uses_previous
