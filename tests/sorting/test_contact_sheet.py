"""The contact sheet shows every picture, escaped, and the evaluation."""

import json
import os
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from helpers.sorting import picture
from protorect.cli import main
from protorect.labeling.predictions import Prediction
from protorect.report.plots.confusion import confusion_plot
from protorect.sorting.contact_sheet import contact_sheet, make_thumbnails
from protorect.sorting.evaluation import evaluate_placements
from protorect.sorting.journal import Placement


class Tiles(HTMLParser):
    """Links and details of tiles, and attributes of pictures."""

    def __init__(self, page):
        super().__init__()
        self.links, self.details, self.pictures, self.scripts = [], [], [], 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "a" and "tile" in values.get("class", ""):
            self.links.append((values["href"], "doubtful" in values["class"]))
            self.details.append(values["data-detail"])
        if tag == "img" and values.get("src"):
            self.pictures.append(values)
        self.scripts += tag == "script"


def placement(path, label, probability, folder=None, number=0, runner_up="other"):
    row = Prediction(path, label, probability, runner_up, probability / 2, 0.75, folder or label)
    return Placement(row, f"{row.folder}/{os.path.basename(path)}", f"{number:064}")


def test_the_most_probable_come_first_and_doubtful_ones_are_marked():
    placements = [
        placement("/p/b.jpg", "cat", 0.6, number=1),
        placement("/p/a.jpg", "cat", 0.95, number=2),
        placement("/p/c.jpg", "cat", 0.4, "_unsure", 3),
        placement("/p/d.jpg", "cat", 0.9, "_unknown", 4),
    ]
    tiles = Tiles(contact_sheet(placements, ["cat", "dog"], [("/e/x.jpg", "cat", "f" * 64)], "t"))
    assert tiles.links == [
        ("./cat/a.jpg", False),
        ("./cat/b.jpg", True),
        ("./_unsure/c.jpg", True),
        ("./_unknown/d.jpg", True),
    ]
    assert all(values["loading"] == "lazy" for values in tiles.pictures)
    assert tiles.pictures[0]["alt"] == "example x.jpg"


def test_details_of_labels_that_contain_commas():
    known = placement("/p/a.jpg", "oil, olive", 0.8, runner_up="oil, palm")
    example = placement("/p/b.jpg", "oil, olive", 0.8, runner_up="")
    assert Tiles(contact_sheet([known, example], ["oil, olive"], [], "t")).details == [
        "oil, olive 80 %, oil, palm 40 %, out-of-distribution score 0.25",
        "oil, olive 80 %, out-of-distribution score 0.25",
    ]


def test_unknown_pictures_are_in_the_order_of_their_scores():
    rows = [placement(f"/p/{n}.jpg", "cat", 0.9, "_unknown") for n in range(3)]
    rows = [
        replace(one, prediction=one.prediction._replace(familiarity=familiarity))
        for one, familiarity in zip(rows, (0.01, 0.03, 0.02), strict=True)
    ]
    links = [link for link, _ in Tiles(contact_sheet(rows, ["cat"], [], "t")).links]
    assert links == ["./_unknown/1.jpg", "./_unknown/2.jpg", "./_unknown/0.jpg"]


def test_names_are_escaped():
    nasty = '/p/"><script>alert(1)</script>#?%.jpg'
    page = contact_sheet([placement(nasty, "<b>", 0.9)], ["<b>"], [], "t")
    assert Tiles(page).scripts == 1
    assert "<script>alert" not in page
    (link, _), *_ = Tiles(page).links
    assert link == "./%3Cb%3E/script%3E%23%3F%25.jpg"


def test_ten_thousand_pictures_make_a_page_of_a_few_megabytes():
    placements = [placement(f"/p/{i}.jpg", f"c{i % 20}", 0.9, number=i) for i in range(10_000)]
    page = contact_sheet(placements, [f"c{i}" for i in range(20)], [], "t")
    assert len(Tiles(page).links) == 10_000
    assert len(page) < 5_000_000


def test_the_evaluation_against_counts_by_hand():
    placements = [
        placement("/p/cat/1.jpg", "cat", 0.9),
        placement("/p/cat/2.jpg", "dog", 0.9),
        placement("/p/cat/3.jpg", "dog", 0.6, "_unsure"),
        placement("/p/dog/4.jpg", "dog", 0.9),
        placement("/p/owl/5.jpg", "dog", 0.9, "_unknown"),
        placement("/p/owl/6.jpg", "cat", 0.9),
    ]
    evaluation = evaluate_placements(placements, ["cat", "dog"])
    assert evaluation.counts.tolist() == [[1, 2], [0, 1]]
    assert (evaluation.pictures, evaluation.accuracy) == (4, 50.0)
    assert (evaluation.accepted, evaluation.accepted_correct) == (3, 2)
    assert (evaluation.distractors, evaluation.distractors_unknown) == (2, 1)
    assert [(true, label, len(some)) for true, label, some in evaluation.confused] == [
        ("cat", "dog", 2)
    ]
    assert "50 % of 2 pictures of other folders are unknown" in evaluation.summary()


def test_the_plot_has_every_name_and_count():
    svg = confusion_plot(np.array([[5, 2], [0, 7]]), ["cat", "dog"])
    for text in ("cat", "dog", "5", "2", "7", "true class"):
        assert f">{text}<" in svg


def test_the_command_writes_it_with_its_thumbnails(colors, capsys):
    shutil.copy(colors.pictures / "red" / "0.png", colors.pictures / "blue" / "wrong.png")
    before = colors.tree()
    arguments = ["sort", colors.pictures, "--examples", colors.examples, "--out", colors.out]
    assert (
        main([*map(str, arguments), "--network", colors.weights, "--eval", "--unknown", "0"]) == 0
    )
    printed = capsys.readouterr().out
    assert "accuracy 96.0 % of 25 pictures" in printed
    assert "1 blue taken for red" in printed
    page = (colors.out / "index.html").read_text()
    tiles = Tiles(page)
    assert len(tiles.links) == 26  # the wrong one twice
    assert len(tiles.pictures) == 26 + 9
    for values in tiles.pictures:
        assert (colors.out / values["src"]).stat().st_size > 100
    for link, _ in tiles.links:
        assert (colors.out / link).exists()
    assert json.loads((colors.out / "evaluation.json").read_text())["accuracy"] == 96.0
    assert (colors.out / "confusion.svg").read_text().startswith("<svg")
    assert main([*map(str, arguments), "--network", colors.weights, "--no-sheet"]) == 0
    for name in ("index.html", "evaluation.json", "confusion.svg"):
        assert not (colors.out / name).exists()  # nothing of an earlier sorting stays
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert main(["undo", str(colors.out)]) == 0
    assert colors.tree() == before


def test_an_edited_table_survives_undo(colors):
    arguments = ["sort", colors.pictures, "--examples", colors.examples, "--out", colors.out]
    assert main([*map(str, arguments), "--network", colors.weights]) == 0
    (colors.out / "predictions.csv").write_text("corrected")
    assert main(["undo", str(colors.out)]) == 0
    assert [path.name for path in colors.out.iterdir()] == ["predictions.csv"]


def test_a_corrected_table_can_be_the_examples_and_is_kept(colors):
    sort = ["sort", str(colors.pictures), "--out", str(colors.out), "--network", colors.weights]
    assert main([*sort, "--examples", str(colors.examples), "--no-sheet"]) == 0
    table = colors.out / "predictions.csv"
    corrected = table.read_text().replace(",red,", ",rouge,")
    table.write_text(corrected)
    before = colors.tree()
    assert main([*sort, "--examples", str(table), "--no-sheet"]) == 2  # all pictures are examples
    assert colors.tree() == before
    assert main([*sort, "--examples", str(colors.examples), "--no-sheet"]) == 0
    assert (colors.out / "edited predictions.csv").read_text() == corrected
    assert table.read_text().startswith("path,label")


def test_a_missing_picture_has_no_thumbnail(colors):
    there = picture(colors.root / "a.png", (1, 2, 3), 0)
    made = colors.root / "thumbnails"
    make_thumbnails(made, [(str(there), "1" * 64), (str(colors.root / "no.png"), "2" * 64)])
    assert [path.name for path in made.iterdir()] == ["1" * 32 + ".jpg"]


def test_thumbnails_of_equal_pictures_are_made_once(colors):
    there = picture(colors.root / "a.png", (1, 2, 3), 0)
    made = colors.root / "thumbnails"
    make_thumbnails(made, [(str(there), "1" * 64)] * 200)
    assert [path.name for path in made.iterdir()] == ["1" * 32 + ".jpg"]
