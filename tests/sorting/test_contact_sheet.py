"""The contact sheet shows every picture, escaped, and has thumbnails."""

from dataclasses import replace

from helpers.contact_sheet import Tiles
from helpers.sorting import picture, placement
from protorect.sorting.contact_sheet import contact_sheet, make_thumbnails, page_name


def one_page(*arguments):
    (page,) = contact_sheet(*arguments)
    return page


def test_the_most_probable_come_first_and_doubtful_ones_are_marked():
    placements = [
        placement("/p/b.jpg", "cat", 0.6, number=1),
        placement("/p/a.jpg", "cat", 0.95, number=2),
        placement("/p/c.jpg", "cat", 0.4, "_unsure", 3),
        placement("/p/d.jpg", "cat", 0.9, "_unknown", 4),
    ]
    tiles = Tiles(one_page(placements, ["cat", "dog"], [("/e/x.jpg", "cat", "f" * 64)], "t"))
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
    assert Tiles(one_page([known, example], ["oil, olive"], [], "t")).details == [
        "oil, olive 80 %, oil, palm 40 %, out-of-distribution score 0.25",
        "oil, olive 80 %, out-of-distribution score 0.25",
    ]


def test_unknown_pictures_are_in_the_order_of_their_scores():
    rows = [placement(f"/p/{n}.jpg", "cat", 0.9, "_unknown") for n in range(3)]
    rows = [
        replace(one, prediction=one.prediction._replace(familiarity=familiarity))
        for one, familiarity in zip(rows, (0.01, 0.03, 0.02), strict=True)
    ]
    links = [link for link, _ in Tiles(one_page(rows, ["cat"], [], "t")).links]
    assert links == ["./_unknown/1.jpg", "./_unknown/2.jpg", "./_unknown/0.jpg"]


def test_names_are_escaped():
    nasty = '/p/"><script>alert(1)</script>#?%.jpg'
    page = one_page([placement(nasty, "<b>", 0.9)], ["<b>"], [], "t")
    assert Tiles(page).scripts == 1
    assert "<script>alert" not in page
    (link, _), *_ = Tiles(page).links
    assert link == "./%3Cb%3E/script%3E%23%3F%25.jpg"


def test_ten_thousand_pictures_make_a_page_of_a_few_megabytes():
    placements = [placement(f"/p/{i}.jpg", f"c{i % 20}", 0.9, number=i) for i in range(10_000)]
    page = one_page(placements, [f"c{i}" for i in range(20)], [], "t")
    assert len(Tiles(page).links) == 10_000
    assert len(page) < 5_000_000


def test_more_pictures_make_several_pages_that_lead_to_each_other():
    long = "<" * 60  # five times as long when it is escaped
    rows = [placement(f"/p/{i}{long}.jpg", f"c{i % 3}", 0.9, number=i) for i in range(900)]
    examples = [("/e/x.jpg", "c2", "f" * 64)]
    pages = contact_sheet(rows, ["c0", "c1", "c2"], examples, "t", largest=400_000)
    assert len(pages) > 2
    assert all(len(page.encode()) <= 400_000 for page in pages)
    shown = [link for page in pages for link, _ in Tiles(page).links]
    assert len(shown) == len(set(shown)) == 900
    for page in pages:
        assert all(f'href="{page_name(number)}"' in page for number in range(len(pages)))
    assert f'href="{page_name(len(pages) - 1)}#g2"' in pages[0] or 'id="g2"' in pages[1]
    assert "example x.jpg" in "".join(pages)


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
