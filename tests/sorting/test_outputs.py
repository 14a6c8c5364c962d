"""The files beside the sorted pictures are written, replaced, and kept where they were edited."""

import functools
import json
import re
import shutil

from helpers.contact_sheet import Tiles
from protorect.cli import main
from protorect.sorting import contact_sheet


def test_contact_sheet_thumbnails_and_evaluation_are_written(colors, capsys):
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
    assert main([*sort, "--examples", str(table), "--no-sheet"]) == 0
    assert (colors.out / "edited predictions.csv").read_text() == corrected
    assert table.read_text().startswith("path,label")
    assert len(list((colors.out / "rouge").iterdir())) == 8
    assert len(table.read_text().splitlines()) == 25


def test_all_pages_of_a_contact_sheet_are_replaced_and_undone(colors, monkeypatch):
    small = functools.partial(contact_sheet.contact_sheet, largest=104_000)
    monkeypatch.setattr("protorect.sorting.outputs.contact_sheet", small)
    before = colors.tree()
    arguments = ["sort", colors.pictures, "--examples", colors.examples, "--out", colors.out]
    assert main([*map(str, arguments), "--network", colors.weights]) == 0
    pages = {path.name for path in colors.out.glob("*.html")}
    assert {"index.html", "index-2.html"} <= pages
    assert main([*map(str, arguments), "--network", colors.weights]) == 0
    assert {path.name for path in colors.out.glob("*.html")} == pages
    assert main(["undo", str(colors.out)]) == 0
    assert colors.tree() == before
