"""Clusters of the pictures that fit no class: candidates for new classes."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from torch.nn.functional import normalize

from protorect.labeling.records import EXAMPLE, UNKNOWN_STATUS, Group, Groups
from protorect.labeling.view import View

_MOST = 2000  # pictures that are clustered, evenly spaced; the others join the nearest cluster
_QUANTILE = 0.9  # of the similarities to the nearest neighbor that clusters must reach on average
_SMALLEST = 2
_SHOWN = 12  # pictures in no group that are named


@torch.inference_mode()
def cluster(view: View) -> Groups:
    """Group the pictures that fit no class; without classes, all pictures.

    Average linkage of cosines (Sokal, Michener 1958). Two pictures belong together if they are as
    similar as pictures of one class are: as similar as examples of the same class, or, without
    several examples, as near neighbors among the pictures themselves.
    """
    free = view.status == UNKNOWN_STATUS if len(view.answers.ways) else view.label < 0
    ids = view.rows.ids[free[view.rows.ids]]
    if len(ids) < _SMALLEST:
        return Groups(view.revision, (), len(ids), tuple(ids.tolist()))
    rows = view.rows.rows[torch.from_numpy(view.rows.places(ids))]
    rows = normalize(rows - view.rows.rows.mean(dim=0), dim=1)
    step = -(-len(ids) // _MOST)
    sample = rows[::step]
    cosines = sample @ sample.T
    least = _least_similarity(view, cosines)
    distance = (1 - cosines).clamp_min(0).double()
    distance.fill_diagonal_(0)
    condensed = squareform(((distance + distance.T) / 2).numpy(), checks=False)
    labels = fcluster(linkage(condensed, "average"), 1 - least, "distance")
    centers = normalize(
        torch.stack([sample[labels == one].mean(dim=0) for one in np.unique(labels)]), dim=1
    )
    similarity, nearest = (rows @ centers.T).max(dim=1)
    if step == 1:
        members = labels - 1
    else:
        members = np.where(similarity.numpy() >= least, nearest.numpy(), -1)
    return _groups(view.revision, ids, members, (rows @ centers.T).numpy())


def _groups(
    revision: int,
    ids: NDArray[np.int64],
    members: NDArray[np.int64],
    similarity: NDArray[np.float32],
) -> Groups:
    groups, alone = [], members < 0
    for one in np.unique(members[members >= 0]).tolist():
        places = np.flatnonzero(members == one)
        if len(places) < _SMALLEST:
            alone[places] = True
            continue
        order = places[np.argsort(-similarity[places, one], kind="stable")]
        groups.append(Group(int(ids[order[0]]), tuple(ids[order].tolist())))
    groups.sort(key=lambda group: (-len(group.ids), group.id))
    single = tuple(ids[alone].tolist())
    return Groups(revision, tuple(groups), len(single), single[:_SHOWN])


def _least_similarity(view: View, cosines: torch.Tensor) -> float:
    """The average cosine from which on pictures are of one group."""
    within = _within_classes(view)
    if len(within) >= 10:
        return float(np.clip(np.median(within), 0.2, 0.95))
    others = cosines.clone()
    others.fill_diagonal_(-1.0)
    nearest = others.amax(dim=1)
    return float(nearest.quantile(1 - _QUANTILE).clamp(0.2, 0.95))


def _within_classes(view: View) -> NDArray[np.float32]:
    """Cosines of pairs of examples of the same class, of at most 20 examples each."""
    center, parts = view.rows.rows.mean(dim=0), [np.empty(0, np.float32)]
    given = view.rows.ids[view.status[view.rows.ids] == EXAMPLE]
    for one in view.classes:
        places = view.rows.places(given[view.label[given] == one.number][:20])
        rows = normalize(view.rows.rows[torch.from_numpy(places)] - center, dim=1)
        upper = np.triu_indices(len(places), 1)
        parts.append((rows @ rows.T).numpy()[upper])
    return np.concatenate(parts)
