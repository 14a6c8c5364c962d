"""The pictures of the demonstration: one episode with what was corrected, and the sorted folder."""

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from protorect.demo.omniglot import WAY, OmniglotResult
from protorect.images.decode import decode
from protorect.images.stored import StoredPicture
from protorect.labeling.prediction import UNKNOWN, UNSURE, Prediction
from protorect.paper.measure import QUERY
from protorect.report.page import Picture, Strip
from protorect.sorting.sort import SortResult

SIDE = 128  # pixels of a photograph
SET_ASIDE = {UNSURE: "Set aside as unsure", UNKNOWN: "Set aside as unknown"}


def is_wrong(omniglot: OmniglotResult, name: str) -> NDArray[np.bool_]:
    """Which queries (episodes, n_query) a method gets wrong, from one example per class."""
    return np.not_equal(omniglot.results[name, 1].predictions, omniglot.episodes.query_way)


def episode_strips(omniglot: OmniglotResult, number: int, rectified: str) -> list[Strip]:
    """One strip per class of an episode: its support, then its queries, marked where CSPN erred."""
    episodes = omniglot.episodes
    before = omniglot.results["cspn", 1].predictions[number]
    after = omniglot.results[rectified, 1].predictions[number]
    strips = []
    for way in range(WAY):
        support = episodes.support[number, way, 0]
        title = f"Class {way + 1}: {_character(omniglot, support)}"
        pictures = [Picture(_ink(omniglot, support), "example", "given")]
        for place in np.flatnonzero(episodes.query_way[number] == way):
            mark, note = _outcome(before[place] + 1, after[place] + 1, way + 1)
            ink = _ink(omniglot, episodes.query[number, place])
            pictures.append(Picture(ink, note or "right", mark, note))
        assert len(pictures) == 1 + QUERY
        strips.append(Strip(title, pictures))
    return strips


def _outcome(before: int, after: int, true: int) -> tuple[str, str]:
    """Mark and note of a query: what CSPN and the rectified prototypes predicted."""
    if after != true:
        return "bad", f"still {after}" if before == after else f"now {after}"
    return ("good", f"was {before}") if before != true else ("", "")


def _ink(omniglot: OmniglotResult, row: int) -> NDArray[np.uint8]:
    ink: NDArray[np.uint8] = 255 - omniglot.images[row]
    return ink


def _character(omniglot: OmniglotResult, row: int) -> str:
    """Name of a class, such as "Tengwar, character 1, rotated by 90°"."""
    alphabet, character, turn = omniglot.class_names[omniglot.labels[row]].split("/")
    angle = int(turn.removeprefix("rot"))
    name = f"{alphabet.replace('_', ' ')}, character {int(character.removeprefix('character'))}"
    return f"{name}, rotated by {angle}°" if angle else name


def folder_strips(photographs: SortResult) -> Iterator[Strip]:
    """One strip per folder that is not empty: examples, then pictures by probability."""
    placements = sorted(photographs.folder.placements, key=lambda one: -one.prediction.probability)
    examples = photographs.folder.plans[-1].examples
    for folder in (*sorted({label for _, label in examples}), *SET_ASIDE):
        pictures = [
            Picture(_pixels(file), "example", "given")
            for file, label in examples
            if label == folder
        ]
        placed = [one.prediction for one in placements if one.prediction.folder == folder]
        pictures += [_placed(row) for row in placed]
        wrong = sum(one.mark == "bad" for one in pictures)
        given = len(pictures) - len(placed)
        counts = (f"{given} examples, " if given else "") + f"{len(placed)} sorted"
        counts += f", {wrong} wrong" if wrong else ""
        if placed:
            yield Strip(f"{SET_ASIDE.get(folder, _name(folder))}: {counts}", pictures)


def _placed(row: Prediction) -> Picture:
    """A picture with its true class, if that is not its folder."""
    true = os.path.basename(os.path.dirname(row.path))
    mark = "" if true == row.label else "bad"
    note = "" if true == row.folder else f"is {_name(true)}"
    return Picture(_pixels(row.path), _name(true), mark, note)


def _name(folder: str) -> str:
    return folder.replace("-", " ")


def _pixels(file: str) -> NDArray[np.uint8]:
    return decode(StoredPicture.from_file(file).read(), SIDE, 3).pixels
