"""The contact sheet in a real browser: pictures load, keys work, no errors are logged."""

import json

import pytest
from benchmarks.browser import CHROMIUM, Browser

from helpers.sorting import ColoredPictures
from protorect.sorting.sort import SortOptions, sort_into
from protorect.uncertainty.thresholds import Thresholds

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")

FOCUS = "document.activeElement.firstElementChild?.alt"
TITLE = "document.activeElement.closest('.group')?.dataset.title"
SEEN = "document.querySelectorAll('.group .tile:not([hidden])').length"


@pytest.fixture(scope="module")
def page(tmp_path_factory, color_weights):
    colors = ColoredPictures(tmp_path_factory.mktemp("sheet"), color_weights, each=40)
    options = SortOptions(thresholds=Thresholds(unknown=0.2), evaluate=True)
    parameters = (colors.pictures, colors.examples, colors.out, options)
    sort_into(*parameters, source=colors.weights, cache=False)
    return colors.out / "index.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory, page):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(autouse=True)
def _fresh(browser, page):
    browser.resize(1280, 900)
    browser.open(page)


def test_pictures_are_loaded_lazily(browser):
    first = "document.querySelector('.group .tile img').naturalWidth"
    browser.wait_for(first, 160)
    assert browser.run("[...document.images].filter(i => i.naturalWidth).length") < 120
    last = "[...document.querySelectorAll('.group .tile img')].at(-1)"
    browser.run(f"{last}.scrollIntoView()")
    browser.wait_for(f"{last}.naturalWidth", 160)
    assert browser.errors == []


def test_the_least_sure_come_first_and_the_classes_stay_in_sight(browser):
    names = "[...document.querySelectorAll('.group .tile img')].map(i => i.alt).join()"
    before = browser.run(names)
    change = "order.value = '{}'; order.dispatchEvent(new Event('change'))"
    browser.run(change.format("least"))
    first = "document.querySelector('.group .grid')"
    percents = f"[...{first}.querySelectorAll('.caption')].map(c => parseInt(c.textContent))"
    assert browser.run(f"{percents}.every((p, i, all) => !i || all[i - 1] <= p)")
    assert browser.run(f"tiles[0] === {first}.firstElementChild")
    browser.run(change.format("surest"))
    assert browser.run(names) == before
    browser.run("scrollTo(0, document.body.scrollHeight)")
    assert browser.run("document.querySelector('nav').getBoundingClientRect().top") == 0


def test_arrow_keys_move_the_focus(browser):
    browser.press("ArrowRight")
    browser.wait_for(f"Boolean({FOCUS})")
    first = browser.run(FOCUS)
    browser.press("ArrowRight", "ArrowRight")
    browser.wait_for(f"{FOCUS} !== {json.dumps(first)}")
    browser.press("ArrowLeft", "ArrowLeft")
    browser.wait_for(FOCUS, first)
    top = browser.run("document.activeElement.getBoundingClientRect().top + scrollY")
    browser.press("ArrowDown")
    browser.wait_for(f"document.activeElement.getBoundingClientRect().top + scrollY > {top}")
    browser.press("ArrowUp")
    browser.wait_for(FOCUS, first)


def test_enter_enlarges_a_picture_and_escape_closes_it(browser):
    browser.press("ArrowRight", "Enter")
    browser.wait_for("large.open")
    name = browser.run("large.querySelector('strong').textContent")
    assert name == browser.run("open.firstElementChild.alt")
    width = "large.querySelector('img').naturalWidth"
    browser.wait_for(width, 40)  # the picture itself, not its thumbnail
    browser.press("ArrowRight")
    browser.wait_for(f"large.querySelector('strong').textContent !== {json.dumps(name)}")
    other = browser.run("large.querySelector('strong').textContent")
    browser.press("Escape")
    browser.wait_for("large.open", False)
    browser.wait_for(FOCUS, other)


def test_n_and_p_go_from_class_to_class(browser):
    browser.press("n")
    browser.wait_for(TITLE, "blue")
    browser.press("n")
    browser.wait_for(TITLE, "green")
    browser.press("p")
    browser.wait_for(TITLE, "blue")


def test_d_shows_doubtful_pictures_only_and_slash_searches(browser):
    browser.wait_for(SEEN, 120)
    browser.press("d")
    doubtful = browser.run("document.querySelectorAll('.group .doubtful').length")
    assert doubtful < 120
    browser.wait_for(SEEN, doubtful)
    browser.press("d", "/", "r", "e", "d")
    red = browser.run("document.querySelectorAll('[data-title=red] .tile').length")
    assert red < 120
    browser.wait_for(SEEN, red)
    browser.press("x", "y")
    browser.wait_for(SEEN, 0)
    browser.wait_for("document.getElementById('none').hidden", False)


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_the_window(browser, page, width):
    browser.resize(width, 800)
    browser.open(page)
    assert browser.run("document.documentElement.scrollWidth") <= width
