"""docs/performance.md, made from the figures in results/performance.json."""

from __future__ import annotations

from typing import Any

HEAD = """\
# Speed and memory

Made by `make bench`; do not edit. BD-CSPN as printed, float32, {threads} threads, \
torch {torch}. Figures are medians of rounds; each round measures the machine and the code one \
after the other, so that a busy machine slows both.

**The limit** of a case is the slower of two times: copying once the bytes that the episodes \
gather (at the rate at which this machine copies memory to memory) and doing the arithmetic of \
the method (at the rate of a 2048 x 2048 float32 matrix product). The copy rate counts a byte \
that is read and written once, as the gather does; were it counted twice, the fractions that \
copying limits would be half as large. Sampling the episodes is part \
of our time, not of the limit. *Plain* is BD-CSPN as one would first write it in torch, batched \
and written out (`benchmarks/plain.py`), on the same episodes in the chunks that suit it best.

| episodes | episodes/s | of the limit | times plain | memory above the features |
|---|---:|---:|---:|---:|
"""
ROW = "| {episodes:,} x {name} | {speed:,.0f} | {fraction:.2f} | {plain:.1f} | {memory:.0f} MB |\n"
PILE = """
One episode of 5 classes and {queries:,} queries of 640 dimensions ({size:.2f} GB), \
`BDCSPN().fit(X, y, X_unlabeled=...)`: {seconds:.1f} s, {fraction:.2f} of the limit, \
{memory:.0f} MB above the features.

The machine copied {copy:.1f} GB/s and multiplied {product:.0f} GFLOP/s in these rounds.
"""
TAIL = """
## What holds it back

- The rows of an episode are gathered once; their normalisation and the shift are folded into \
the products (`unitrows.py`), so no second copy of the queries is ever written.
- BD-CSPN reads the gathered queries four times (their mean, the scores with the shift, the \
rectified prototypes, the final scores). A chunk of some hundred episodes stays in the outer \
cache but not in the inner one: these passes run at the speed of the outer cache. Chunks that \
fit the inner cache would be faster if calls of torch cost nothing; there are some fifty small \
ones a chunk, and with few episodes in it they take longer than the passes they save.
- Many ways turn the cost from gathering to the score matrix. At 1000 ways it has 15 million \
entries an episode, written twice in memory that the system must map anew and read by the maxima.
- The estimator passes the pile through once more for `transduction_`, in the blocks that \
`predict` uses, so that both answer alike to the last bit.
"""


def performance_page(figures: dict[str, Any]) -> str:
    """The page in Markdown."""
    head = HEAD.format(**figures["machine"])
    rows = "".join(
        ROW.format(
            episodes=case["episodes"],
            name=case["name"],
            speed=case["episodes_per_second"],
            fraction=case["fraction_of_limit"],
            plain=case["times_plain"],
            memory=case["memory_above_features"] / 1e6,
        )
        for case in figures["episodes"]
    )
    first, pile = figures["episodes"][0], figures["pile"]
    below = PILE.format(
        queries=pile["queries"],
        size=pile["feature_bytes"] / 1e9,
        seconds=pile["seconds"],
        fraction=pile["fraction_of_limit"],
        memory=pile["memory_above_features"] / 1e6,
        copy=first["copy_bytes_per_second"] / 1e9,
        product=first["product_operations_per_second"] / 1e9,
    )
    return head + rows + below + TAIL
