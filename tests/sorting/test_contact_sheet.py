"""The contact sheet holds what was sorted, escaped, and says how right it is."""

import json
import os
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest

from helpers.sorting import picture
from protorect.cli import main
from protorect.errors import DataError
from protorect.labeling.predictions import Prediction
from protorect.report.plots.confusion import confusion_plot
from protorect.sorting.contact_sheet import contact_sheet
from protorect.sorting.evaluation import assess
from protorect.sorting.journal import Entry


class Tiles(HTMLParser):
    """Links of tiles and sources of pictures."""

    def __init__(self, page):
        super().__init__()
        self.links, self.pictures, self.scripts = [], [], 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        held = dict(attributes)
        if tag == "a" and "tile" in held.get("class", ""):
            self.links.append((held["href"], "doubtful" in held["class"]))
        if tag == "img" and held.get("src"):
            self.pictures.append(held)
        self.scripts += tag == "script"


def entry(path, label, probability, folder=None, number=0):
    row = Prediction(path, label, probability, "other", probability / 2, 0.5, folder or label)
    return Entry(row, f"{row.folder}/{os.path.basename(path)}", f"{number:064}")


def test_the_surest_first_and_the_doubtful_marked():
    entries = [
        entry("/p/b.jpg", "cat", 0.6, number=1),
        entry("/p/a.jpg", "cat", 0.95, number=2),
        entry("/p/c.jpg", "cat", 0.4, "_unsure", 3),
        entry("/p/d.jpg", "cat", 0.9, "_unknown", 4),
    ]
    tiles = Tiles(contact_sheet(entries, ["cat", "dog"], [("/e/x.jpg", "cat", "f" * 64)], "t"))
    assert tiles.links == [
        ("./cat/a.jpg", False),
        ("./cat/b.jpg", True),
        ("./_unsure/c.jpg", True),
        ("./_unknown/d.jpg", True),
    ]
    assert all(held["loading"] == "lazy" for held in tiles.pictures)
    assert tiles.pictures[0]["alt"] == "example x.jpg"


def test_names_are_escaped():
    nasty = '/p/"><script>alert(1)</script>#?%.jpg'
    page = contact_sheet([entry(nasty, "<b>", 0.9)], ["<b>"], [], "t")
    assert Tiles(page).scripts == 1
    assert "<script>alert" not in page
    (link, _), *_ = Tiles(page).links
    assert link == "./%3Cb%3E/script%3E%23%3F%25.jpg"


def test_ten_thousand_pictures_make_a_page_of_a_few_megabytes():
    entries = [entry(f"/p/{i}.jpg", f"c{i % 20}", 0.9, number=i) for i in range(10_000)]
    page = contact_sheet(entries, [f"c{i}" for i in range(20)], [], "_thumbnails")
    assert len(Tiles(page).links) == 10_000
    assert len(page) < 5_000_000


def test_the_truth_is_counted_by_hand():
    entries = [
        entry("/p/cat/1.jpg", "cat", 0.9),
        entry("/p/cat/2.jpg", "dog", 0.9),
        entry("/p/cat/3.jpg", "dog", 0.6, "_unsure"),
        entry("/p/dog/4.jpg", "dog", 0.9),
        entry("/p/owl/5.jpg", "dog", 0.9, "_unknown"),
        entry("/p/owl/6.jpg", "cat", 0.9),
    ]
    found = assess(entries, ["cat", "dog"])
    assert found.counts.tolist() == [[1, 2], [0, 1]]
    assert (found.pictures, found.accuracy) == (4, 50.0)
    assert (found.kept, found.kept_right) == (3, 2)
    assert (found.foreign, found.foreign_unknown) == (2, 1)
    assert [(true, label, len(some)) for true, label, some in found.confused] == [("cat", "dog", 2)]
    assert "50 % of 2 pictures of other folders are unknown" in found.summary()


def test_the_plot_has_every_name_and_count():
    svg = confusion_plot(np.array([[5, 2], [0, 7]]), ["cat", "dog"])
    for text in ("cat", "dog", "5", "2", "7", "true class"):
        assert f">{text}<" in svg
    with pytest.raises(DataError, match="do not fit 3 classes"):
        confusion_plot(np.zeros((2, 2), int), ["a", "b", "c"])


def test_the_command_makes_it_with_its_thumbnails(world, capsys):
    shutil.copy(world.pile / "red" / "0.png", world.pile / "blue" / "wrong.png")
    before = world.tree()
    given = ["sort", world.pile, "--examples", world.examples, "--out", world.out]
    assert main([*map(str, given), "--network", world.weights, "--eval", "--unknown", "0"]) == 0
    told = capsys.readouterr().out
    assert "accuracy 96.0 % of 25 pictures" in told
    assert "1 blue taken for red" in told
    page = (world.out / "index.html").read_text()
    tiles = Tiles(page)
    assert len(tiles.links) == 26  # the wrong one twice
    assert len(tiles.pictures) == 26 + 9
    for held in tiles.pictures:
        assert (world.out / held["src"]).stat().st_size > 100
    for link, _ in tiles.links:
        assert (world.out / link).exists()
    assert json.loads((world.out / "evaluation.json").read_text())["accuracy"] == 96.0
    assert (world.out / "confusion.svg").read_text().startswith("<svg")
    assert main([*map(str, given), "--network", world.weights, "--no-sheet"]) == 0
    for name in ("index.html", "evaluation.json", "confusion.svg"):
        assert not (world.out / name).exists()  # nothing of an earlier sorting stays
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert main(["undo", str(world.out)]) == 0
    assert world.tree() == before


def test_a_page_that_was_edited_survives_undo(world):
    given = ["sort", world.pile, "--examples", world.examples, "--out", world.out]
    assert main([*map(str, given), "--network", world.weights]) == 0
    (world.out / "predictions.csv").write_text("corrected")
    assert main(["undo", str(world.out)]) == 0
    assert [path.name for path in world.out.iterdir()] == ["predictions.csv"]


def test_a_table_that_was_corrected_can_be_the_examples_and_is_kept(world):
    sort = ["sort", str(world.pile), "--out", str(world.out), "--network", world.weights]
    assert main([*sort, "--examples", str(world.examples), "--no-sheet"]) == 0
    table = world.out / "predictions.csv"
    corrected = table.read_text().replace(",red,", ",rouge,")
    table.write_text(corrected)
    before = world.tree()
    assert main([*sort, "--examples", str(table), "--no-sheet"]) == 2  # all of the pile is examples
    assert world.tree() == before
    assert main([*sort, "--examples", str(world.examples), "--no-sheet"]) == 0
    assert (world.out / "edited predictions.csv").read_text() == corrected
    assert table.read_text().startswith("path,label")


def test_a_thumbnail_of_a_picture_that_is_gone(world):
    from protorect.sorting.thumbnails import make_thumbnails

    there = picture(world.root / "a.png", (1, 2, 3), 0)
    made = world.root / "thumbnails"
    make_thumbnails(made, [(str(there), "1" * 64), (str(world.root / "no.png"), "2" * 64)])
    assert [path.name for path in made.iterdir()] == ["1" * 32 + ".jpg"]
