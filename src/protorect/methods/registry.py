"""The methods that can be asked for by name, and how their options are written."""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from protorect.errors import OptionError, unknown_name
from protorect.methods.alpha_tim import AlphaTimOptions, alpha_tim
from protorect.methods.bd_cspn import (
    BD_C,
    BD_CSPN,
    BD_CSPN_CLASSES,
    BD_I,
    CSPN,
    rectification,
)
from protorect.methods.bd_cspn_plus import PlusOptions, bd_cspn_plus
from protorect.methods.label_propagation import LabelPropagationOptions, label_propagation
from protorect.methods.laplacian_shot import LaplacianShotOptions, laplacian_shot
from protorect.methods.logistic import LogisticOptions, logistic
from protorect.methods.matching import MatchingOptions, matching
from protorect.methods.method import Described, Method, PictureMethod
from protorect.methods.protonet import ProtoNetOptions, protonet
from protorect.methods.pt_map import PtMapOptions, pt_map
from protorect.methods.ridge import RidgeOptions, ridge
from protorect.methods.simpleshot import SimpleShotOptions, simpleshot
from protorect.methods.soft_kmeans import SoftKMeansOptions, soft_kmeans
from protorect.methods.tft import TftOptions, tft
from protorect.methods.tft_head import TftHeadOptions, tft_head
from protorect.methods.tim import TimOptions, tim
from protorect.methods.tim_adm import TimAdmOptions, tim_adm

ALL = "all"

# One entry a method: it then appears in `evaluate`, the command, the documents and the tests.
_ENTRIES = (
    Method("cspn", rectification, CSPN, "nearest basic prototype by cosine", "inductive"),
    Method(
        "bd-c",
        rectification,
        BD_C,
        "queries shifted to the support (cross-class bias)",
        "transductive",
    ),
    Method(
        "bd-i",
        rectification,
        BD_I,
        "confident queries join the prototypes (intra-class bias)",
        "transductive",
    ),
    Method(
        "bd-cspn",
        rectification,
        BD_CSPN,
        "both corrections, weights of eq. (6) as printed",
        "transductive",
    ),
    Method(
        "bd-cspn-classes",
        rectification,
        BD_CSPN_CLASSES,
        "both corrections, weights from each sample's softmax over the classes",
        "transductive",
    ),
    Method(
        "bd-cspn-plus",
        bd_cspn_plus,
        PlusOptions(),
        "two readings of the pile, the evidence between them, then a regression",
        "transductive",
    ),
    Method("protonet", protonet, ProtoNetOptions(), "nearest class mean by distance", "inductive"),
    Method(
        "simpleshot",
        simpleshot,
        SimpleShotOptions(),
        "nearest class mean by distance, features centred and normalised",
        "inductive",
    ),
    Method(
        "matching",
        matching,
        MatchingOptions(),
        "support samples vote, weighted by a softmax of cosines",
        "inductive",
    ),
    Method("ridge", ridge, RidgeOptions(), "ridge regression to one-hot labels", "inductive"),
    Method("logistic", logistic, LogisticOptions(), "logistic regression", "inductive"),
    Method(
        "soft-kmeans",
        soft_kmeans,
        SoftKMeansOptions(),
        "queries join the class means by their soft assignment",
        "transductive",
    ),
    Method(
        "label-propagation",
        label_propagation,
        LabelPropagationOptions(),
        "labels spread over a graph of nearest neighbours",
        "transductive",
    ),
    Method(
        "laplacian-shot",
        laplacian_shot,
        LaplacianShotOptions(),
        "near a prototype and in agreement with the nearest queries",
        "transductive",
    ),
    Method(
        "tft-head",
        tft_head,
        TftHeadOptions(),
        "classifier fine-tuned on the support and for certain queries",
        "transductive",
    ),
    Method(
        "tim",
        tim,
        TimOptions(),
        "prototypes of most mutual information with the queries, by gradient descent",
        "transductive",
    ),
    Method(
        "tim-adm",
        tim_adm,
        TimAdmOptions(),
        "the same in closed alternating steps",
        "transductive",
    ),
    Method(
        "alpha-tim",
        alpha_tim,
        AlphaTimOptions(),
        "mutual information of the alpha-divergence, for unequal classes",
        "transductive",
    ),
    Method(
        "pt-map",
        pt_map,
        PtMapOptions(),
        "power transform, then optimal transport to equal classes",
        "transductive",
    ),
)
METHODS = {entry.name: entry for entry in _ENTRIES}
PICTURE_METHODS = {
    "tft": PictureMethod(
        "tft",
        tft,
        TftOptions(),
        "the whole network fine-tuned in the same way; needs pictures",
        "transductive",
    )
}
PAPER = ("cspn", "bd-c", "bd-i", "bd-cspn", "bd-cspn-classes")


def chosen_methods(spellings: str | Method | Iterable[str | Method]) -> list[Method]:
    """The methods of these names, each once; "all" is every one that needs features only."""
    return [_on_features(one) for one in _chosen(spellings, METHODS)]


def chosen_with_pictures(spellings: Iterable[str]) -> list[Method | PictureMethod]:
    """As `chosen_methods`, where pictures are at hand: "all" is every one there is."""
    return _chosen(spellings, METHODS | PICTURE_METHODS)


def method(spelling: str | Method) -> Method:
    """The method of this name, with options if any: "bd-cspn" or "bd-cspn:z=4,rank=softmax"."""
    return _on_features(_spelled(spelling))


def _on_features(chosen: Method | PictureMethod) -> Method:
    if isinstance(chosen, PictureMethod):
        raise OptionError(
            f"{chosen.name} fine-tunes the network on pictures, so features alone do not do. Give "
            "the run and the packed pictures that made them: `protorect evaluate FEATURES "
            f"--method {chosen.name} --network RUN --pictures PACKED`."
        )
    return chosen


def _chosen(
    spellings: str | Method | Iterable[str | Method], everything: Iterable[str]
) -> list[Method | PictureMethod]:
    listed = [spellings] if isinstance(spellings, str | Method) else list(spellings)
    if not listed:
        raise OptionError("no method given.")
    named = [name for one in listed for name in (everything if one == ALL else [one])]
    return list({one.name: one for one in map(_spelled, named)}.values())


def _spelled(spelling: str | Method) -> Method | PictureMethod:
    if isinstance(spelling, Method):
        return spelling
    known = METHODS | PICTURE_METHODS
    if not isinstance(spelling, str):
        raise OptionError(f"{spelling!r} is no method; give the name of one of {sorted(known)}.")
    name, _, listed = spelling.strip().partition(":")
    if name not in known:
        raise unknown_name("method", name, known)
    chosen = known[name]
    options = [_option(chosen, item) for item in listed.split(",") if item]
    changes = dict(options)
    if len(changes) < len(options):
        raise OptionError(f"{spelling}: an option is given twice.")
    return chosen.with_options(**changes)


def _option(chosen: Described, item: str) -> tuple[str, Any]:
    name, equals, text = item.partition("=")
    name, text = name.strip(), text.strip()
    if not equals:
        raise OptionError(f"{item!r} is not an option; write name=value, as in bd-cspn:z=4.")
    kinds = get_type_hints(type(chosen.options))
    return name, _parsed(name, text, kinds[name]) if name in kinds else text


def _parsed(name: str, text: str, kind: Any) -> Any:
    """The value in the type that the option is declared with."""
    kinds = get_args(kind) if NoneType in get_args(kind) else (kind,)
    if NoneType in kinds and text in ("all", "none"):
        return None
    wanted = "a number"
    try:
        if bool in kinds:
            wanted = "true or false"
            return {"true": True, "false": False, "yes": True, "no": False}[text.lower()]
        if int in kinds:
            wanted = "a whole number or all" if NoneType in kinds else "a whole number"
            return int(text)
        if float in kinds:
            return float(text)
    except (ValueError, KeyError):
        raise OptionError(f"{name}={text}: {wanted} is wanted.") from None
    if str not in kinds and get_origin(kinds[0]) is not Literal:
        raise OptionError(f"{name} can be given in Python only, by with_options({name}=...).")
    return text
