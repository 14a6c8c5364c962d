"""Extraction: packed pictures against the bare forward pass, class folders against `sort`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.machine import compare, rates_and_ratio, seconds
from benchmarks.network import NetworkCase, bare_forward, picture_shape
from benchmarks.preparing import PictureCase, write_pictures
from protorect._utils.checkpoint import save_tensors
from protorect.backbones.inference import uses_bfloat16
from protorect.embedding.extract import extract
from protorect.labeling.classifier import ImageClassifier
from protorect.report.table import Table

# Batches as `protorect.backbones.inference.batch_size` makes them.
CASES = (NetworkCase(28, 1, 256, 0, False, 16), NetworkCase(84, 3, 37, 0, False, 28))
SMALL_CASES = (NetworkCase(28, 1, 256, 0, False, 1),)
FOLDERS, SMALL_FOLDERS = (PictureCase("JPEG", 350, 224, count, 1) for count in (400, 40))
NETWORK = "efficientnet-lite0"


def measure(small: bool = False) -> dict[str, Any]:
    """All cases; the small version only shows that everything runs."""
    cases, folders, rounds = (SMALL_CASES, SMALL_FOLDERS, 1) if small else (CASES, FOLDERS, 5)
    return {
        "cases": [_packed(case, rounds) for case in cases],
        "folders": _folders(folders, rounds),
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """Extraction against the bare forward pass, and against sorting."""
    rows = [[picture_shape(case), *rates_and_ratio(case)] for case in measured["cases"]]
    folders = measured["folders"]
    return {
        "extraction": Table("", ["pictures", "images/s", "bare", "of bare"], rows),
        "extraction-folders": Table(
            f"{NETWORK} in float32, without the cache.",
            ["JPEG files", "extract, pictures/s", "sort, pictures/s", "of sort"],
            [[f"{folders['side']} x {folders['side']}", *rates_and_ratio(folders)]],
        ),
    }


def _packed(case: NetworkCase, rounds: int) -> dict[str, Any]:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        count = len(case.packed(folder / "packed").split("train").labels)
        backbone, channels = case.backbone(), case.channels
        card = {"kind": "backbone", "backbone": "conv64", "channels": channels, "size": case.size}
        card |= {"mean": [0.5] * channels, "std": [0.29] * channels}
        save_tensors(folder / "w.safetensors", backbone.state_dict(), card)

        def library() -> float:
            return count / seconds(
                lambda: _extract(folder / "w.safetensors", folder / "packed", split="train")
            )

        rates = compare(library, bare_forward(case, uses_bfloat16("auto")), rounds)
    return {"size": case.size, "channels": case.channels} | rates


def _folders(case: PictureCase, rounds: int) -> dict[str, Any]:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "pictures"
        write_pictures(case, folder)
        examples = {one.name: [min(one.iterdir())] for one in folder.iterdir()}
        options: dict[str, Any] = {"precision": "float32", "cache": False}

        def library() -> float:
            return case.count / seconds(lambda: _extract(NETWORK, folder, **options))

        def sort_before_placing() -> float:
            return case.count / seconds(
                lambda: ImageClassifier.from_examples(examples, **options).predict(folder)
            )

        return {"side": case.side} | compare(library, sort_before_placing, rounds)


def _extract(source: Path | str, pictures: Path, **options: Any) -> None:
    with TemporaryDirectory() as out:
        extract(source, pictures, Path(out) / "features", **options)
