"""The sections of the page, and the committed documents."""

from dataclasses import replace
from pathlib import Path

from protorect.paper.document import documents, experiment_sections
from protorect.paper.record import Measurement, Record, load_records
from protorect.report.page import Listing

ROOT = Path(__file__).parents[2]
FILES = tuple(
    {"file": f"omniglot-conv64-{split}.npz", "data": "omniglot", "backbone": "conv64"}
    | {"sha256": "0" * 64, "weights": "w" * 64}
    for split in ("val", "test")
)
CSPN = Measurement("omniglot", "conv64", "cspn", 5, 1, 15, 4, 97.0, 0.5)
MEASURED = tuple(replace(CSPN, shot=shot) for shot in (1, 5))
HEAD_ONLY = Record("tft", 0, 1.0, FILES, MEASURED, {})


def test_the_committed_documents_are_up_to_date(monkeypatch):
    monkeypatch.chdir(ROOT)  # where configurations are looked for
    records = load_records("results/paper")
    for name, text in documents(records, experiment_sections(records), trainings=True).items():
        committed = ROOT / "docs" / name
        assert committed.exists(), f"{name} is missing: make results"
        if committed.suffix == ".md":
            assert committed.read_text() == text, f"{name} is not up to date: make results"


def shown(record):
    elements = experiment_sections([record])["tft"].elements
    return elements, {one.caption for one in elements if isinstance(one, Listing)}


def test_fine_tuned_networks_are_compared_with_cspn():
    tft = [replace(one, method="tft", episodes=2) for one in MEASURED]
    difference = {"episodes": 2, "1": {"mean": 1.5, "ci95": 0.25}, "5": {"mean": -0.5, "ci95": 1.0}}
    data = {"omniglot-conv64": {"tft": difference}}
    elements, captions = shown(replace(HEAD_ONLY, measured=(*MEASURED, *tft), figure_data=data))
    (table,) = (one for one in elements if "same episodes" in getattr(one, "caption", ""))
    assert table.rows == [["Omniglot, ConvNet-64", "2", "+1.50 ± 0.25", "-0.50 ± 1.00"]]
    (details,) = (one for one in elements if isinstance(one, dict))
    assert details["command"] == "`protorect paper tft --seed 0 --fine-tuned-episodes 2`"
    assert not any("needs the training run" in caption for caption in captions)


def test_without_fine_tuned_networks_the_commands_are_shown():
    elements, _ = shown(HEAD_ONLY)
    (listing,) = (
        one for one in elements if "needs the training run" in getattr(one, "caption", "")
    )
    assert [line.split()[1] for line in listing.lines] == ["prepare", "paper"]


def test_the_published_table_of_fine_tuning_is_shown():
    elements, _ = shown(HEAD_ONLY)
    assert any(getattr(one, "caption", "").startswith("Table 5. ") for one in elements)
