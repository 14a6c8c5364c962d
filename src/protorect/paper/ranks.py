"""Ranks on Meta-Dataset: what the paper prints, what follows from its numbers, what is measured."""

from __future__ import annotations

from statistics import mean

from protorect.paper.compare import NOTHING, Found
from protorect.paper.names import DATASETS
from protorect.paper.published import Key, published
from protorect.report.page import Element
from protorect.report.table import Table

METHODS = {"bd-cspn": "weights as printed", "bd-cspn-classes": "class weights"}


def rank(dataset: str, accuracy: float) -> int:
    """The place of an accuracy among the seven systems of the leaderboard on one source."""
    return 1 + sum(system[dataset] > accuracy for system in published().leaderboard.values())


def ranks(found: Found) -> list[Element]:
    """The rank of the 5-shot model on every source, and their averages."""
    table = published().tables[14]
    rows, printed, follows = [], [], []
    ours: dict[str, list[int]] = {method: [] for method in METHODS}
    for row in table.rows:
        dataset = row.key.dataset
        printed.append(row.rank or 0)
        follows.append(rank(dataset, row.values[5].mean))
        cells = [DATASETS[dataset], str(row.rank), str(follows[-1])]
        for method, places in ours.items():
            one = found.get((Key(dataset, None, method), 5))
            if one is not None:
                places.append(rank(dataset, one.value))
            cells.append(NOTHING if one is None else f"{places[-1]} ({one.value:.2f})")
        rows.append(cells)
    rows.append(
        [
            "mean",
            f"{mean(printed):.1f}",
            f"{mean(follows):.1f}",
            *(f"{mean(p):.1f}, of {len(p)}" if p else NOTHING for p in ours.values()),
        ]
    )
    header = ["source", "printed", "from its numbers", *METHODS.values()]
    differ = [r[0] for r in rows[:-1] if r[1] != r[2]]
    return [
        f"The paper gives {table.average_rank} as the average rank of its 5-shot model. The ranks "
        f"in its own table average {mean(printed):.1f}. Against the seven systems of the public "
        f"leaderboard of Meta-Dataset its accuracies rank {mean(follows):.1f} on average: "
        f"{', '.join(differ)} does not have the rank that is printed.",
        Table(
            "Rank of the 5-shot model among the seven systems of the leaderboard and itself; "
            "measured accuracy in brackets. The leaderboard's tasks have variable ways and shots, "
            "so a rank of a 5-way 5-shot accuracy among them is the paper's comparison, not ours.",
            header,
            rows,
        ),
    ]
