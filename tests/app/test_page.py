"""The labeling page in a real browser: by keyboard, by mouse, with a server that goes away."""

import json

import pytest
from benchmarks.browser import CHROMIUM, Browser

from helpers.labeling_server import TOKEN, opened, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
TILES = "document.querySelectorAll('.grid .tile:not(.wait)').length"


@pytest.fixture
def session(colors):
    with opened(colors) as session:
        yield session


@pytest.fixture
def client(session):
    with served(session) as client:
        yield client


@pytest.fixture
def page(client, tmp_path):
    with Browser(tmp_path / "profile", 1440, 900) as browser:
        browser.open(f"{client.url}?token={TOKEN}")
        browser.wait_for(f"{TILES} > 0")
        yield browser
        assert browser.errors == []


def text(page, selector):
    return page.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")


def saved(page):
    """Wait until the server has confirmed every act."""
    page.wait_for("document.querySelector('#saved').innerText.trim() === 'Saved'")
    page.wait_for("!document.querySelector('#strip').classList.contains('busy')")


def test_the_address_loses_its_token_and_the_page_survives_a_reload(page):
    assert "token" not in page.run("location.href")
    page.run("location.reload()")
    page.wait_for(f"{TILES} > 0")
    assert text(page, "h1") in ("blue", "green", "red")


def test_a_picture_is_labeled_by_keyboard_alone_and_the_act_undone(page, client):
    assert page.run("document.activeElement.dataset.index") == "0"
    before, name = client.get("state")["undo"], text(page, "h1")
    other = "2" if name == "blue" else "1"
    page.press(other)
    saved(page)
    assert "labeled 1 picture" in text(page, "#strip .did")
    assert client.get("state")["undo"] == before + 1
    assert page.run("Number(document.activeElement.dataset.index)") == 1
    page.press("z")
    page.wait_for("document.querySelector('#strip .did').innerText.includes('undid')")
    saved(page)
    assert client.get("state")["undo"] == before
    page.press("Z", shift=True)
    page.wait_for("document.querySelector('#strip .did').innerText.includes('again')")
    saved(page)
    assert client.get("state")["undo"] == before + 1


def test_enter_accepts_the_page_without_the_selected_pictures(page, client):
    proposed = page.run("document.querySelectorAll('.grid .tile[data-status=proposed]').length")
    page.press(" ")
    assert page.run("document.querySelectorAll('.grid [aria-selected=true]').length") == 1
    assert f"Accept the other {proposed - 1}" in text(page, ".acts")
    page.press("Enter")
    saved(page)
    state = client.get("state")
    assert sum(one["accepted"] for one in state["classes"]) == proposed - 1


def test_selection_by_click_range_and_rectangle(page):
    page.click(".grid .tile[data-index='0']")
    page.click(".grid .tile[data-index='3']", shift=True)
    assert page.run("document.querySelectorAll('.grid [aria-selected=true]').length") == 4
    page.press("Escape")
    assert page.run("document.querySelectorAll('.grid [aria-selected=true]').length") == 0
    box = page.run("(r => [r.x, r.y])(document.querySelector('.grid').getBoundingClientRect())")
    page.drag((box[0] - 6, box[1] - 6), (box[0] + 200, box[1] + 60))
    assert page.run("document.querySelectorAll('.grid [aria-selected=true]').length") == 2
    page.press("a", control=True)
    assert page.run("document.querySelectorAll('.grid [aria-selected=true]').length") > 2


def test_a_class_is_chosen_by_typing_and_made_by_typing(page, client):
    page.press("c")
    page.wait_for("document.querySelector('#palette').open")
    page.type("gre")
    page.wait_for("document.querySelector('#palette .palrow')?.innerText.includes('green')")
    page.press("Enter")
    saved(page)
    page.press("n")
    page.type("&lt;i&gt; new")
    page.press("Enter")
    saved(page)
    names = [one["name"] for one in client.get("state")["classes"]]
    assert "&lt;i&gt; new" in names
    assert "&lt;i&gt; new" in text(page, "#classes")


def test_what_changed_is_shown(page, client):
    state = client.get("state")
    answer = client.post("class", {"name": "violet", "ids": [0, 1]})
    page.wait_for("document.querySelector('#strip .did').innerText.includes('another window')")
    assert [one["name"] for one in state["classes"]] != ["violet"]
    page.wait_for("document.querySelector('#classes').innerText.includes('violet')")
    if answer["changed"]:
        page.press("w")
        page.wait_for("document.querySelector('h1').innerText === 'What changed'")


def test_details_unsure_unknown_audit_and_export(page, client):
    page.press("v")
    page.wait_for("!document.querySelector('#details').hidden")
    page.wait_for("document.querySelectorAll('#details .choice').length === 3")
    page.press("v")
    client.post("label", {"ids": [0], "unsure": True})
    client.post("label", {"ids": [1, 2], "unknown": True})
    for view, words in (
        ("unsure", "Which class is it?"),
        ("unknown", "Unknown"),
        ("all", "All pictures"),
    ):
        page.run(f"location.hash = '#{view}'")
        page.wait_for(f"document.querySelector('main').innerText.includes({json.dumps(words)})")
    page.run("location.hash = '#audit'")
    page.wait_for("document.querySelectorAll('.check').length > 3")
    page.press("Enter", "Enter")
    page.wait_for("document.querySelector('.est').innerText.includes('2 of 2 checked are right')")
    page.run("location.hash = '#all'")
    page.wait_for(f"{TILES} > 0")
    page.press("e")
    page.wait_for("document.querySelector('#export').open")
    page.click("#export-run")
    page.wait_for("document.querySelector('#export-result').innerText.includes('written to')")


def test_acts_wait_for_a_server_that_is_away(session, tmp_path):
    with served(session) as client:
        port = client.port
        browser = Browser(tmp_path / "profile", 1440, 900)
        browser.open(f"{client.url}?token={TOKEN}")
        browser.wait_for(f"{TILES} > 0")
        before = client.get("state")["undo"]
    with browser:
        # As if the key had been pressed before the page noticed that the server is gone.
        browser.run("void import('/static/js/acts.js').then((acts) => acts.label([0], 'red'))")
        browser.wait_for("document.querySelector('#banner').innerText.includes('No answer')", 30)
        assert "Not saved yet" in text(browser, "#strip")
        with served(session, port) as client:
            browser.wait_for("document.querySelector('#saved').innerText.trim() === 'Saved'", 30)
            assert client.get("state")["undo"] == before + 1
            assert text(browser, "#banner") == ""


def test_two_browsers_see_the_same_project(page, client, tmp_path):
    with Browser(tmp_path / "second", 1000, 700) as second:
        second.open(f"{client.url}?token={TOKEN}")
        second.wait_for(f"{TILES} > 0")
        page.press("1")
        saved(page)
        second.wait_for("document.querySelector('#strip').innerText.includes('another window')")


def test_ten_thousand_pictures_need_few_tiles(page):
    tiles = page.run("""(async () => {
        const { Grid } = await import('/static/js/grid.js');
        const grid = Grid.current, ids = grid.ids;
        grid.sections = [{ ids: Array.from({ length: 10000 }, (_, i) => ids[i % ids.length]) }];
        grid.ids = grid.sections[0].ids;
        grid.layout();
        for (let i = 0; i < 10; i += 1) {
            grid.element.scrollTop += 9000;
            await new Promise(requestAnimationFrame);
        }
        return document.querySelectorAll('.grid .tile').length;
    })()""")
    assert 20 < tiles < 200


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (800, False), (1440, True)])
def test_nothing_is_wider_than_the_window(page, width, dark):
    page.resize(width, 844, dark)
    page.wait_for(f"innerWidth === {width}")
    for view in ("all", "unsure", "unknown", "audit"):
        page.run(f"location.hash = '#{view}'")
        page.wait_for("document.querySelector('main .view') !== null")
        assert page.run("document.documentElement.scrollWidth") <= width
