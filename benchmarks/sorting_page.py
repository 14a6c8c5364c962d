"""docs/sort.md, made from the figures in results/sort.json."""

from __future__ import annotations

from typing import Any

HEAD = """\
# Sorting a pile of pictures

Figures by `python -m benchmarks.sorting`; do not edit here.

```text
protorect sort PICTURES --examples EXAMPLES --out DIR      # --copy, --move; --eval; --watch
protorect undo DIR
```

`EXAMPLES` is a folder of class folders or a CSV file with `path,label`; a `predictions.csv` \
that you have corrected is one. `DIR` gets a folder a class, `_unknown`, `_unsure`, \
`predictions.csv`, `errors.csv` where something could not be read, and the contact sheet \
`index.html`.
- **Files are safe.** Without `--move` nothing outside `DIR` is touched. With it, the whole plan \
is on disk before the first picture moves; killed at any moment, the same command goes on and \
`protorect undo DIR` restores every byte. Nothing is ever overwritten: equal names become \
`name (2).jpg`.
- **Again.** Given again with other examples, links and copies are replaced, and as features are \
kept by content the answer comes in seconds. What was moved stays; new pictures are added.
- **An example that is also in the pile** is not sorted if it is the same file, and has its label \
if it is a copy.
- **Exit codes**: 0, 1 if some pictures could not be read or placed, 2 for a mistake, 130 for \
Ctrl-C.

```python
predictions = protorect.sort_images("examples", "photos")
predictions.frame  # path, label, probability, runner_up, margin, ...

model = protorect.ImageClassifier.from_examples("examples")
model.save("products.safetensors")
protorect.ImageClassifier.load("products.safetensors").predict("photos")
```

## How sure is sure

Every example is left out once and classified with the pile as if it had no label; a picture of \
the pile that was given its label with middling confidence takes its place. What became of the \
examples sets the *temperature* of the probabilities, and the scale of *familiarity*: about \
which share of the pictures of a class would be less like it. Half of it is the picture's own \
likeness, half that of the pictures of the pile nearest to it, as foreign pictures rarely come \
alone. A picture below `--unknown` \
(default {unknown:g}) belongs to none of the classes; of the others, a label of less probability \
than `--unsure` (default {unsure:g}) is set aside.

Grocery photographs (20 classes x 25), EfficientNet-Lite0, `{method}`, means over {seeds} random \
choices of the examples, the other pictures as the pile. The last column is what \
`protorect evaluate` finds for the same number of ways, shots and queries. ECE is the expected \
calibration error in percent points, 15 bins: *plain* is softmax(10 x cosine). How examples are \
left out was chosen on these photographs, too, with Omniglot as a check; the temperatures are not.

| examples a class | accuracy | said on average | ECE plain | ECE calibrated | `evaluate` |
|---:|---:|---:|---:|---:|---:|
"""
ROW = (
    "| {shot} | {accuracy:.1f} ± {ci95:.1f} | {confidence:.1f} | {ece_before:.1f} | {ece:.1f} "
    "| {expected:.1f} ± {expected_ci95:.1f} |\n"
)
UNKNOWN = """
## Unknown

{known} classes of 5 examples each, once with nothing else in the pile and once with {foreign} \
further classes, a fifth of it. What is measured of likeness was chosen on every second class of \
the photographs and of the validation classes of CUB; the figures are of the other photographs, \
means over {seeds} choices. The default was chosen with a look at these, too.

| `--unknown` | set aside if nothing is foreign | of our classes beside foreign ones \
| of the foreign ones |
|---:|---:|---:|---:|
"""
UNKNOWN_ROW = "| {unknown:g} | {alone:.0f} % | {ours:.0f} % | {foreign:.0f} % |\n"
TAIL = """
Familiarity tells the foreign from ours with an area under the curve of {auroc:.3f} \
({chosen:.3f} on the classes it was chosen on). Where every picture gets a label, {all:.1f} % of \
the pile are right, as the foreign ones cannot be; of the most familiar 80 %, {kept:.1f} % are \
right, and of our classes among them {ours:.1f} %.

The share is a promise to our own pictures, not one about the foreign ones: how many of those are \
caught depends on how like our classes they are. These are groceries among groceries; birds among \
groceries are far easier. Where much of the pile is foreign, 0.1 or 0.2 catches more.
"""


def sorting_page(figures: dict[str, Any]) -> str:
    """The page in Markdown."""
    head = HEAD.format(method=figures["method"], seeds=figures["seeds"], **figures["thresholds"])
    rows = "".join(
        ROW.format(
            **row,
            expected=row["evaluate"]["accuracy"],
            expected_ci95=row["evaluate"]["ci95"],
        )
        for row in figures["calibration"]
    )
    unknown = figures["unknown"]
    held_out = unknown["held_out"]
    about = UNKNOWN.format(
        known=unknown["known"], foreign=unknown["foreign"], seeds=figures["seeds"]
    )
    shares = "".join(UNKNOWN_ROW.format(**row) for row in held_out["thresholds"])
    tail = TAIL.format(
        auroc=held_out["auroc"],
        chosen=unknown["chosen"]["auroc"],
        all=held_out["accuracy_all"],
        kept=held_out["accuracy_kept"],
        ours=held_out["accuracy_kept_ours"],
    )
    return head + rows + about + shares + tail
