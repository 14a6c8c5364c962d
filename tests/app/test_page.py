"""The labeling page in a real browser: by keyboard, by mouse, with a server that goes away."""

import json
import os
import socket
import threading
import time
from contextlib import suppress

import pytest
from benchmarks.browser import CHROMIUM, PATIENCE, Browser

from helpers.labeling_server import TOKEN, opened, served
from helpers.sorting import OTHER, ColoredPictures, picture
from protorect._utils.text import printable
from protorect.labeling import background
from protorect.labeling.session import LabelingSession

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
TILES = "document.querySelectorAll('.grid .tile:not(.wait)').length"


@pytest.fixture
def session(colors):
    with opened(colors) as session:
        yield session


@pytest.fixture
def yellow(colors):
    """Pictures of a color that no class has."""
    return [picture(colors.pictures / "yellow" / f"{i}.png", OTHER, 500 + i) for i in range(6)]


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


# The page, the server and the keyboard do not wait for each other: what follows from an act is
# waited for, never read once.


def text(selector):
    """The expression of an element's text, empty while there is no such element."""
    return f"(document.querySelector({json.dumps(selector)})?.innerText ?? '').trim()"


def says(page, selector, words):
    page.wait_for(f"{text(selector)}.includes({json.dumps(words)})")


def counts(page, selector, number):
    page.wait_for(f"document.querySelectorAll({json.dumps(selector)}).length", number)


def show(page, view, name):
    """Go to a view, and wait until it is the one that is shown."""
    page.run(f"location.hash = {json.dumps('#' + view)}")
    page.wait_for("document.querySelector('main .view')?.getAttribute('aria-label')", name)


def acts(client):
    """How many acts can be undone."""
    return client.get("state")["undo"]


def of_folder(client, name):
    """The numbers of the pictures in a folder."""
    rows = client.get("pictures?order=name&limit=100")["pictures"]
    return [one["id"] for one in rows if one["name"].startswith(f"{name}/")]


def saved(page, client, number):
    """Wait until the server has confirmed every act, so that this many can be undone."""
    end = time.monotonic() + PATIENCE
    while (found := acts(client)) != number:
        assert time.monotonic() < end, f"{found} acts instead of {number}"
        time.sleep(0.03)
    page.wait_for(text("#saved"), "Saved")
    page.wait_for("document.querySelector('#strip').classList.contains('busy')", False)


SELECTED = ".grid [aria-selected=true]"


def test_the_address_loses_its_token_and_the_page_survives_a_reload(page):
    page.wait_for("location.search", "")
    for _ in range(3):
        page.reload()
        page.wait_for(f"['blue', 'green', 'red'].includes({text('h1')}) && {TILES} > 0")


def test_a_picture_is_labeled_by_keyboard_alone_and_the_act_undone(page, client):
    page.wait_for("document.activeElement.dataset.index", "0")
    before = acts(client)
    page.press("2" if page.run(text("h1")) == "blue" else "1")
    saved(page, client, before + 1)
    says(page, "#strip .did", "labeled 1 picture")
    page.wait_for("document.activeElement.dataset.index", "1")
    page.press("z")
    says(page, "#strip .did", "undid")
    saved(page, client, before)
    page.press("Z", shift=True)
    says(page, "#strip .did", "again")
    saved(page, client, before + 1)


def test_focus_returns_to_the_pictures_after_a_click(page, client):
    before = acts(client)
    page.click(".grid .tile[data-index='2']")
    says(page, ".acts", "1 selected")
    page.click(".acts .btn[aria-keyshortcuts=X]")
    saved(page, client, before + 1)
    page.wait_for("document.activeElement.dataset.index", "2")
    page.click("#strip-undo")
    saved(page, client, before)
    page.wait_for("document.activeElement.dataset.index", "2")


def test_enter_goes_on_at_the_end_of_a_class(page, client):
    name = page.run(text("h1"))
    before = acts(client)
    page.press("Enter")
    saved(page, client, before + 1)
    says(page, "main", f"Nothing left to review in {name}")
    page.wait_for("document.activeElement.innerText.startsWith('Go to')")


def test_classes_are_named_by_keyboard_alone(colors, tmp_path):
    with (
        opened(colors, examples=False) as session,
        served(session) as client,
        Browser(tmp_path / "profile", 1440, 900) as page,
    ):
        page.open(f"{client.url}?token={TOKEN}")
        for number, name in enumerate(["one", "two"]):
            page.wait_for("document.activeElement.dataset.index", str(number))
            page.press(" ", *name, "Enter", "ArrowRight")
            saved(page, client, number + 1)
        assert [one["name"] for one in client.get("state")["classes"]] == ["one", "two"]
        page.press("j")
        page.wait_for(text("h1"), "one")
        assert page.errors == []


def test_enter_accepts_the_page_without_the_selected_pictures(page, client):
    before = acts(client)
    proposed = page.run("document.querySelectorAll('.grid .tile[data-status=proposed]').length")
    page.press(" ")
    counts(page, SELECTED, 1)
    says(page, ".acts", f"Accept the other {proposed - 1}")
    page.press("Enter")
    saved(page, client, before + 1)
    assert sum(one["accepted"] for one in client.get("state")["classes"]) == proposed - 1


def test_selection_by_click_range_and_rectangle(page):
    page.click(".grid .tile[data-index='0']")
    page.click(".grid .tile[data-index='3']", shift=True)
    counts(page, SELECTED, 4)
    page.press("Escape")
    counts(page, SELECTED, 0)
    box = page.run("(r => [r.x, r.y])(document.querySelector('.grid').getBoundingClientRect())")
    page.drag((box[0] - 6, box[1] - 6), (box[0] + 200, box[1] + 60))
    counts(page, SELECTED, 2)
    page.press("a", control=True)
    counts(page, SELECTED, page.run(TILES))


def test_a_class_is_chosen_by_typing_and_made_by_typing(page, client):
    before = acts(client)
    page.press("c")
    page.wait_for("document.querySelector('#palette').open")
    page.type("gre")
    says(page, "#palette .palrow", "green")
    page.press("Enter")
    saved(page, client, before + 1)
    page.press("n")
    page.wait_for("document.querySelector('#palette').open")
    page.type("&lt;i&gt; new")
    says(page, "#palette .palrow", "&lt;i&gt; new")
    page.press("Enter")
    saved(page, client, before + 2)
    assert "&lt;i&gt; new" in [one["name"] for one in client.get("state")["classes"]]
    says(page, "#classes", "&lt;i&gt; new")


def test_a_name_is_typed_slowly_into_the_search(page, client):
    before = acts(client)
    page.press("/")
    page.wait_for("document.activeElement.id", "search")
    page.type("re")
    page.wait_for(text("h1"), "“re”")
    page.press("d", "/")
    page.wait_for(text("h1"), "“red/”")
    assert page.run("document.activeElement.id") == "search"
    page.press("Enter")
    page.wait_for("document.activeElement.dataset.index", "0")
    assert acts(client) == before


def test_what_changed_is_shown(yellow, page, client):
    answer = client.post("class", {"name": "yellow", "ids": of_folder(client, "yellow")[:2]})
    says(page, "#strip .did", "another window")
    says(page, "#classes", "yellow")
    assert len(answer["changed"]) == len(yellow) - 2
    says(page, "#strip", "changed:")
    page.press("w")
    page.wait_for(text("h1"), "What changed")
    counts(page, ".grid .tile:not(.wait)", len(answer["changed"]))


def test_details_unsure_unknown_audit_and_export(page, client):
    page.press("v")
    page.wait_for("document.querySelector('#details').hidden", False)
    counts(page, "#details .choice", 3)
    page.press("v")
    page.wait_for("document.querySelector('#details').hidden")
    client.post("label", {"ids": [0], "unsure": True})
    client.post("label", {"ids": [1, 2], "unknown": True})
    show(page, "unsure", "Unsure pictures, one at a time")
    says(page, "main", "Which class is it?")
    show(page, "unknown", "Unknown pictures in groups")
    says(page, "main", "2 pictures")
    show(page, "audit", "Audit")
    page.press("Enter", "Enter")
    says(page, ".est", "2 of 2 checked are right")
    show(page, "all", "All pictures")
    page.press("e")
    page.wait_for("document.querySelector('#export').open")
    page.click("#export-run")
    says(page, "#export-result", "written to")


def test_the_export_says_how_many_pictures_each_choice_has(page, session, client):
    client.post("label", {"ids": [0], "label": "green"})  # a blue one: less sure afterwards
    assert session.wait(60)
    counted = "import('/static/js/store.js').then(s => s.total(s.checkedOf))"
    classes = client.get("state")["classes"]
    done = sum(one["examples"] + one["accepted"] for one in classes)
    page.wait_for(counted, done)
    rows = client.get("pictures?status=proposed&limit=100")["pictures"]
    middle = sorted(100 * one["probability"] for one in rows)[len(rows) // 2]
    for limit in (0, middle - 1e-6, 100):
        page.press("e")
        page.wait_for("document.querySelector('#export').open")
        page.run(f"document.querySelector('[name=limit]').value = {limit}")
        page.run("document.querySelector('[name=limit]').dispatchEvent(new Event('input'))")
        found = done + sum(100 * one["probability"] >= limit for one in rows)
        page.wait_for(text("#export-from"), str(found))
        assert page.run("document.querySelector('[value=from]').checked")
        page.press("Escape")
    assert found < done + len(rows)


def test_a_picture_that_is_being_read_is_waited_for(page):
    twice = "s.load([0]), s.load([0]).then(() => s.store.pictures.has(0))"
    reads = f"s.store.pictures.delete(0), {twice}"
    page.wait_for(f"import('/static/js/store.js').then(s => ({reads}))")


def test_the_marks_are_explained_on_the_own_pictures(page):
    page.press("?")
    counts(page, ".legend-row .p img[src^='/api/thumbnail/']", 7)


def test_pictures_like_no_other_are_shown_below_the_groups(page, client):
    client.post("label", {"ids": [0, 8, 16], "unknown": True})
    answer = client.get("groups")
    show(page, "unknown", VIEWS["unknown"])
    counts(page, ".loose .minis img", min(3, answer["single"]))
    assert len(answer["single_ids"]) == answer["single"]


def test_unsure_pictures_keep_the_focus_on_their_choices(page, client):
    client.post("label", {"ids": [0, 1, 2], "unsure": True})
    show(page, "unsure", VIEWS["unsure"])
    page.wait_for("document.activeElement.classList.contains('top1')")
    before = acts(client)
    page.press("s")
    saved(page, client, before + 1)
    says(page, "#strip-did", "labeled 1 picture as")
    page.wait_for("document.activeElement.classList.contains('top1')")


def test_a_class_that_is_done_leads_to_the_next(page, client):
    name = page.run(text("h1"))
    rows = client.get(f"pictures?class={name}&status=proposed&limit=100")["pictures"]
    client.post("accept", {"ids": [one["id"] for one in rows]})
    left = next(one["name"] for one in client.get("state")["classes"] if one["proposed"])
    show(page, f"class?name={name}&order=sure", name)
    says(page, ".blank", f"Nothing left to review in {name}")
    page.wait_for("document.activeElement.innerText.startsWith('Go to')")
    page.press("j")
    page.wait_for(text("h1"), left)


def test_new_classes_are_accepted_where_they_are_shown(yellow, page, client):
    answer = client.post("class", {"name": "yellow", "ids": of_folder(client, "yellow")[:2]})
    says(page, "#strip", "changed:")
    before = acts(client)
    page.press("w")
    page.wait_for(text("h1"), "What changed")
    says(page, ".section", "Accept")
    page.click(".section .btn")
    saved(page, client, before + 1)
    ids = ",".join(str(one["id"]) for one in answer["changed"])
    rows = client.get(f"pictures?ids={ids}")["pictures"]
    assert any(one["status"] == "accepted" for one in rows)


@pytest.mark.parametrize("view", ["audit", "unsure", "unknown"])
def test_keys_label_the_picture_in_focus_after_a_view_of_another_kind(page, client, view):
    client.post("label", {"ids": [0], "unsure": True})
    client.post("label", {"ids": [1, 2], "unknown": True})
    show(page, view, VIEWS[view])
    show(page, "all", "All pictures")
    page.wait_for("document.activeElement.dataset.index", "0")
    before = acts(client)
    page.press("ArrowRight", "ArrowRight", "ArrowRight", "2")
    saved(page, client, before + 1)
    page.wait_for("document.activeElement.dataset.index", "4")
    assert client.get("pictures?ids=0")["pictures"][0]["status"] == "unsure"


def test_an_audit_is_extended_and_its_corrections_are_applied(tmp_path, color_weights):
    colors = ColoredPictures(tmp_path, color_weights, each=30)
    with (
        opened(colors) as session,
        served(session) as client,
        Browser(tmp_path / "profile", 1440, 900) as page,
    ):
        before = acts(client)
        page.open(f"{client.url}?token={TOKEN}#audit")
        counts(page, ".check", 50)
        page.press("Enter", "x")
        says(page, ".est", "1 of 2 checked are right")
        page.run("[...document.querySelectorAll('.bar .btn')][0].click()")  # Check 50 more
        population = client.get("audit?n=1")["population"]
        counts(page, ".check", min(100, population))
        counts(page, ".check[data-answer=right]", 1)
        says(page, ".est", "1 of 2 checked are right")
        page.reload()
        counts(page, ".check", min(100, population))
        counts(page, ".check[data-answer=wrong]", 1)
        page.press("Enter")
        says(page, ".est", "2 of 3 checked are right")
        page.run("[...document.querySelectorAll('.bar .btn')].at(-1).click()")  # Finish
        saved(page, client, before + 1)
        says(page, "#strip .did", "finished the audit")
        assert client.get("state")["unknown"] >= 1
        assert page.errors == []


def test_a_class_is_renamed_merged_and_deleted_in_its_menu(page, client):
    def menu(words):
        page.wait_for("document.querySelector('.bar [aria-haspopup=menu]') !== null")
        page.click(".bar [aria-haspopup=menu]")
        page.wait_for("document.querySelector('#menu').open")
        item = f"[...document.querySelectorAll('#menu .btn')].find(b => b.innerText === {words!r})"
        page.run(f"{item}.click()")

    before = acts(client)
    show(page, "class?name=red", "red")
    menu("Rename…")
    page.wait_for("document.querySelector('#ask').open")
    page.type("dark &amp; red")
    page.press("Enter")
    saved(page, client, before + 1)
    page.wait_for(text("h1"), "dark &amp; red")
    page.wait_for("document.title.startsWith('dark &amp; red · project')")
    menu("Merge into…")
    page.wait_for("document.querySelector('#palette').open")
    page.type("green")
    says(page, "#palette .palrow", "green")
    page.press("Enter")
    saved(page, client, before + 2)
    page.wait_for(text("h1"), "green")
    menu("Delete")
    saved(page, client, before + 3)
    says(page, "#classes", "blue")
    assert [one["name"] for one in client.get("state")["classes"]] == ["blue"]
    page.wait_for(text("h1"), "blue")


def fixed_port():
    """A port that nobody else is given while no server listens on it."""
    first = 20_000 + os.getpid() % 5_000  # below the range of ports that are given out
    for port in range(first, first + 100):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


def test_acts_wait_for_a_server_that_is_away(session, tmp_path):
    port = fixed_port()
    with Browser(tmp_path / "profile", 1440, 900) as page:
        with served(session, port) as client:
            page.open(f"{client.url}?token={TOKEN}")
            page.wait_for(f"{TILES} > 0")
            before = acts(client)
        # As if the key had been pressed before the page noticed that the server is gone.
        page.run("void import('/static/js/acts.js').then(acts => acts.label([0], 'red'))")
        says(page, "#lost", "No answer")
        says(page, "#strip", "Not saved yet")
        says(page, ".grid", "Not saved")
        with served(session, port) as client:
            saved(page, client, before + 1)
            page.wait_for("document.querySelector('#lost').hidden")


def test_an_act_that_is_refused_is_dropped(page, client):
    before = acts(client)
    page.run("void import('/static/js/acts.js').then(acts => acts.label([99999], 'red'))")
    says(page, "#strip-sum", "there is no picture 99999")
    page.click("#strip-drop")
    page.wait_for(text("#strip-did"), "The act was dropped")
    assert acts(client) == before
    page.errors.clear()  # the refusal itself


def test_pictures_that_are_read_later_appear(colors, tmp_path, monkeypatch):
    wait, embed_at = threading.Event(), background.embed_at
    monkeypatch.setattr(background, "embed_at", lambda *given: wait.wait() and embed_at(*given))
    given = colors.root / "project", colors.pictures
    with (
        LabelingSession.open(*given, source=colors.weights, cache=False) as session,
        served(session) as client,
        Browser(tmp_path / "profile", 1440, 900) as page,
    ):
        try:
            page.open(f"{client.url}?token={TOKEN}")
            says(page, "main", "The pictures are being read")
            says(page, "#reading", "Reading pictures: 0 of 24")
        finally:
            wait.set()
        counts(page, ".grid .tile:not(.wait)", 24)
        page.wait_for("document.querySelector('#reading').hidden")
        assert page.errors == []


def test_a_picture_that_vanishes_says_so(client, colors, tmp_path):
    (colors.pictures / "blue" / "3.png").unlink()
    with Browser(tmp_path / "profile", 1440, 900) as page:
        page.open(f"{client.url}?token={TOKEN}#all")
        gone = "[...document.querySelectorAll('.tile.gone')].map(tile => tile.title)"
        page.wait_for(gone, ["blue/3.png"])


def test_two_browsers_see_the_same_project(page, client, tmp_path):
    before = acts(client)
    with Browser(tmp_path / "second", 1000, 700) as second:
        second.open(f"{client.url}?token={TOKEN}")
        second.wait_for(f"{TILES} > 0")
        page.press("1")
        saved(page, client, before + 1)
        says(second, "#strip", "another window")


def test_nothing_is_missed_between_the_first_reading_and_the_events(page, client):
    # The server answers the first reading, and acts before the page listens.
    page.run("""(async () => {
        const { listen } = await import('/static/js/api.js');
        const nothing = () => {};
        const change = event => (window.missed = event.act);
        window.listenLater = since =>
            listen(since, { change, probabilities: nothing, progress: nothing, lost: nothing });
    })()""")
    revision = client.get("state")["revision"]
    done = client.post("label", {"ids": [0], "label": "red"})
    page.run(f"void listenLater({revision})")
    page.wait_for("window.missed", done["act"])


def test_an_act_of_another_window_is_said_although_the_state_was_read_before(page, client):
    # Whatever comes first, the event or a reading of the state that includes the act.
    page.run("""(async () => {
        const { refreshState, store } = await import('/static/js/store.js');
        const before = store.state.revision;
        const again = () => store.state.revision === before && setTimeout(read);
        const read = () => refreshState().then(again);
        void read();
    })()""")
    for number in range(3):
        client.post("label", {"ids": [number], "label": "red"})
    says(page, "#strip .did", "another window")


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


VIEWS = {
    "all": "All pictures",
    "unsure": "Unsure pictures, one at a time",
    "unknown": "Unknown pictures in groups",
    "audit": "Audit",
}


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (800, False), (1440, True)])
def test_nothing_is_wider_than_the_window(page, width, dark):
    page.resize(width, 844, dark)
    page.wait_for("innerWidth", width)
    for view, name in VIEWS.items():
        show(page, view, name)
        page.wait_for(f"document.documentElement.scrollWidth <= {width}")


TARGETS = """[...document.querySelectorAll('button, a, input, select')].filter(one => {
    const { width, height } = one.getBoundingClientRect();
    return one.checkVisibility() && !one.matches('.skip') && (width < 44 || height < 44);
}).map(one => one.outerHTML)"""


def test_targets_on_a_phone_are_large_enough(page):
    page.resize(390, 844)
    page.wait_for("innerWidth", 390)
    page.click(".grid .tile[data-index='1']")
    says(page, ".thumbbar", "Unknown")
    assert page.run(TARGETS) == []
    page.click("#menu-button")
    page.wait_for("document.querySelector('#classes').classList.contains('open')")
    assert page.run(TARGETS) == []
    show(page, "audit", "Audit")
    assert page.run(TARGETS) == []


HOSTILE = ("<img src=x onerror=document.title=666>", "</script><script>document.title=666</script>")
HOSTILE += ("\u202egpj.exe", "\x1b[31mred", "&lt;b&gt;", "javascript:alert(1)", '" onload="x')


def test_hostile_names_of_pictures_are_shown_as_text(tmp_path, color_weights):
    colors = ColoredPictures(tmp_path, color_weights, each=2)
    safe = [name.replace("/", "_") for name in HOSTILE]
    for number, name in enumerate(safe):
        source = colors.pictures / "red" / "0.png"
        (colors.pictures / f"{name}.png").write_bytes(source.read_bytes() + bytes(number))
    with (
        opened(colors) as session,
        served(session) as client,
        Browser(tmp_path / "profile", 1440, 900) as browser,
    ):
        names = [one["name"] for one in client.get("pictures?limit=100")["pictures"]]
        browser.open(f"{client.url}?token={TOKEN}")
        browser.wait_for(f"{TILES} > 0")
        for view in ("all", "review"):
            browser.run(f"location.hash = '#{view}'")
            time.sleep(0.3)
        assert browser.run("document.title") != "666"
        inside = "'img:not([src^=\"/api/\"]), main script, [onerror], [onload]'"
        assert browser.run(f"document.querySelectorAll({inside}).length") == 0
        assert browser.errors == []
    assert {printable(f"{name}.png") for name in safe} <= set(names)
