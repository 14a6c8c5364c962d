"""Which pictures are shown, and in which order."""

from collections.abc import Iterable
from itertools import zip_longest

import numpy as np
import torch
from numpy.typing import NDArray

from protorect.errors import OptionError, unknown_name
from protorect.labeling.acts import LabelState
from protorect.labeling.prediction import UNKNOWN, UNSURE
from protorect.labeling.records import (
    ACCEPTED,
    EXAMPLE,
    PROPOSED,
    STATUSES,
    UNKNOWN_STATUS,
    UNSURE_STATUS,
)
from protorect.labeling.view import View
from protorect.uncertainty.suggest import diverse_order, near_duplicates_last

ORDERS = ("sure", "unsure", "useful", "name")
MOST_IDS = 500
_DIVERSE = 200  # pictures that are chosen to differ before there are answers


def select(
    view: View,
    state: LabelState,
    *,
    label: str | None = None,
    status: Iterable[str] = (),
    order: str = "sure",
    search: str = "",
    similar: int | None = None,
    changed: NDArray[np.int64] | None = None,
    ids: Iterable[int] | None = None,
) -> NDArray[np.int64]:
    """The numbers of the pictures that are asked for, in their order; see `pictures`."""
    if order not in ORDERS:
        raise unknown_name("order", str(order), ORDERS)
    if ids is not None:
        chosen = state.checked_ids(ids)
        if len(chosen) > MOST_IDS:
            raise OptionError(f"{len(chosen)} ids are given; at most {MOST_IDS} are allowed.")
    elif similar is not None:
        chosen = _similar(view, int(state.checked_ids([similar])[0]))
    else:
        chosen = ordered(view, order)
    keep = _filter(view, state, label, status)
    if search:
        text = str(search).casefold()
        keep &= np.array([text in one.name.casefold() for one in view.read.listed], bool)
    if changed is not None:
        among = np.zeros(view.pictures, bool)
        among[changed] = True
        keep &= among
    return chosen[keep[chosen]]


def ordered(view: View, order: str) -> NDArray[np.int64]:
    """All pictures in an order."""
    if order == "name":
        return view.name_order
    if order == "useful":
        return useful(view)
    probability = view.probability
    if order == "sure":
        return np.argsort(-np.nan_to_num(probability, nan=-1.0), kind="stable")
    return np.argsort(np.nan_to_num(probability, nan=2.0), kind="stable")


def useful(view: View) -> NDArray[np.int64]:
    """All pictures, those whose labels would help most first, those labeled by a person last."""
    given = np.isin(view.status, (EXAMPLE, ACCEPTED)) | (view.status == UNKNOWN_STATUS) & (
        view.label < 0
    )
    key = np.where(given, 3.0, 2.0)  # not embedded yet
    ids = view.rows.ids
    if len(view.answers.ways):
        key[ids] = np.where(given[ids], 3.0, view.answers.margin)
    elif len(ids):
        free = ids[~given[ids]]
        rows = view.rows.rows[torch.from_numpy(view.rows.places(free))]
        first = diverse_order(rows, _DIVERSE)
        key[free] = 1.5
        key[free[first]] = np.arange(len(first)) / len(first)
    return np.argsort(key, kind="stable")


def suggestions(view: View, count: int) -> NDArray[np.int64]:
    """The first `count` pictures to label next: useful ones that differ from each other."""
    order = useful(view)
    order = order[~np.isin(view.status[order], (EXAMPLE, ACCEPTED)) & ~view.read.unreadable[order]]
    places = view.rows.places(order)
    order, places = order[places >= 0], places[places >= 0]
    if not len(view.answers.ways):
        return order[:count]
    most = 4 * count + 50
    kept = near_duplicates_last(view.rows.rows[torch.from_numpy(places[:most])])
    close = np.concatenate([order[:most][kept], order[most:]])
    far = _unlike_all_examples(view, order, count)
    return _alternately(far, close)[:count]


def _unlike_all_examples(view: View, ids: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Pictures that were set aside and differ most from all labeled ones: perhaps a new class.

    The smallest margins alone would never find a class that has no example yet.
    """
    aside = ids[np.isin(view.status[ids], (UNSURE_STATUS, UNKNOWN_STATUS))]
    given = view.rows.ids[np.isin(view.status[view.rows.ids], (EXAMPLE, ACCEPTED))]
    rows, known = (
        view.rows.rows[torch.from_numpy(view.rows.places(some))] for some in (aside, given)
    )
    return aside[diverse_order(rows, count, known)]


def _alternately(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """One of each in turn, every number once."""
    pairs = zip_longest(first.tolist(), second.tolist())
    return np.array(
        list(dict.fromkeys(n for pair in pairs for n in pair if n is not None)), np.int64
    )


def _filter(
    view: View, state: LabelState, label: str | None, status: Iterable[str]
) -> NDArray[np.bool_]:
    codes = []
    for one in [status] if isinstance(status, str) else status:
        if one not in STATUSES:
            raise unknown_name("status", str(one), STATUSES)
        codes.append(STATUSES.index(one))
    keep = np.ones(view.pictures, bool)
    if label in (UNSURE, UNKNOWN):
        keep = view.status == (UNSURE_STATUS if label == UNSURE else UNKNOWN_STATUS)
    elif label is not None:
        keep = view.label == state.find(label).number
        codes = codes or [PROPOSED, EXAMPLE, ACCEPTED]
    return keep & np.isin(view.status, codes) if codes else keep


def _similar(view: View, picture: int) -> NDArray[np.int64]:
    """The other pictures, the most similar first; only embedded ones."""
    place = int(view.rows.places(np.array([picture]))[0])
    if place < 0:
        reason = view.read.error(picture) or "it is not embedded yet"
        raise OptionError(f"nothing can be compared with picture {picture}: {reason}.")
    rows = torch.nn.functional.normalize(view.rows.rows, dim=1)
    cosines = (rows @ rows[place]).numpy()
    order = np.argsort(-cosines, kind="stable")
    others: NDArray[np.int64] = view.rows.ids[order[order != place]]
    return others
