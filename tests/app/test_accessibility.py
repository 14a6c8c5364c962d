"""The labeling page as axe-core sees it, in light and dark, wide and narrow."""

import json
from importlib.resources import files

import pytest
from benchmarks.browser import CHROMIUM, Browser

from helpers.labeling_server import TOKEN, opened, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
TILES = "document.querySelectorAll('.grid .tile:not(.wait)').length"
TITLE = "document.querySelector('main .view')?.getAttribute('aria-label')"
VIEWS = {  # its title, and what it shows when it is complete
    "all": ("All pictures", ".grid .tile:not(.wait)"),
    "class?name=blue": ("blue", ".grid .tile:not(.wait)"),
    "unsure": ("Unsure pictures, one at a time", ".card"),
    "unknown": ("Unknown pictures in groups", ".group, .blank, .loose"),
    "audit": ("Audit", ".check"),
    "start": ("First labels", ".grid .tile:not(.wait)"),
}


@pytest.mark.parametrize(
    ("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)]
)
def test_no_violations(colors, tmp_path, width, dark):
    with opened(colors) as session, served(session) as client:
        client.post("label", {"ids": [0, 1], "unsure": True})
        client.post("label", {"ids": [2, 3, 4], "unknown": True})
        with Browser(tmp_path / "profile", width, 900, dark) as page:
            page.open(f"{client.url}?token={TOKEN}")
            page.wait_for(f"{TILES} > 0")
            page.run(files("axe_core_python").joinpath("axe.min.js").read_text() + ";true")
            for view, (title, part) in VIEWS.items():
                page.run(f"location.hash = {json.dumps('#' + view)}")
                page.wait_for(TITLE, title)
                page.wait_for(f"document.querySelector({json.dumps(part)}) !== null")
                assert violations(page) == [], view
            for button in ("help-button", "export-button"):
                page.run(f"document.querySelector('#{button}').click()")
                page.wait_for("document.querySelector('dialog[open]') !== null")
                assert violations(page) == [], button
                page.run("document.querySelector('dialog[open]').close()")
            page.run("document.querySelector('main').append(new Image())")
            assert violations(page) != []  # a picture without a text is found


def violations(page):
    """What axe-core finds: the rule and the element."""
    return page.run(
        "axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => "
        "nodes.map((node) => `${id}: ${node.html.slice(0, 200)}`)))"
    )
