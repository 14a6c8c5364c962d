"""What data sets, backbones and methods are called in tables."""

from __future__ import annotations

from protorect.paper.published import Key

DATASETS = {
    "mini-imagenet": "miniImageNet",
    "tiered-imagenet": "tieredImageNet",
    "omniglot": "Omniglot",
    "cub": "CUB",
    "meta-ilsvrc-2012": "ILSVRC",
    "meta-omniglot": "Omniglot",
    "meta-aircraft": "Aircraft",
    "meta-cu-birds": "Birds",
    "meta-dtd": "Textures",
    "meta-quickdraw": "Quick Draw",
    "meta-fungi": "Fungi",
    "meta-vgg-flower": "VGG Flower",
    "meta-traffic-sign": "Traffic Signs",
    "meta-mscoco": "MSCOCO",
}
BACKBONES = {
    "conv64": "ConvNet-64",
    "conv128": "ConvNet-128",
    "conv256": "ConvNet-256",
    "resnet12": "ResNet-12",
    "wrn28-10": "WRN-28-10",
    "efficientnet-lite0": "EfficientNet-Lite0",
}
SYSTEMS = {
    "cspn": "CSPN",
    "bd-c": "BD_c-CSPN",
    "bd-i": "BD_i-CSPN",
    "bd-cspn": "BD-CSPN",
    "bd-i:weighting=classes": "BD_i-CSPN (classes)",
    "bd-cspn-classes": "BD-CSPN (classes)",
    "tft": "Transductive fine-tuning",
    "tft-head": "Transductive fine-tuning (head)",
}
READINGS = {"samples": "weights as printed", "classes": "class weights"}


def system_name(system: str) -> str:
    """Of a method of ours, or a compared system as it is."""
    return SYSTEMS.get(system, system)


def labels(keys: list[Key]) -> list[str]:
    """A name for each key that says what differs among them, the system always."""
    varies = [len({key[place] for key in keys}) > 1 for place in range(len(Key._fields))]
    return [_label(key, dict(zip(Key._fields, varies, strict=True))) for key in keys]


def shared_names(keys: list[Key]) -> list[str]:
    """The data set and the backbone, where all keys have the same."""
    datasets, backbones = {key.dataset for key in keys}, {key.backbone for key in keys}
    names = [DATASETS[name] for name in datasets] if len(datasets) == 1 else []
    if len(backbones) == 1:
        names += [BACKBONES.get(name, name) for name in backbones if name is not None]
    return names


def _label(key: Key, varies: dict[str, bool]) -> str:
    parts = [system_name(key.system)]
    if varies["backbone"] and key.backbone is not None:
        parts.append(BACKBONES.get(key.backbone, key.backbone))
    if varies["dataset"]:
        parts.append(DATASETS[key.dataset])
    if varies["way"]:
        parts.append(f"{key.way}-way")
    if varies["distractors"]:
        parts.append(f"N' = {key.distractors}")
    if varies["quantity"]:
        parts.append({"accuracy": "accuracy", "map": "mAP"}[key.quantity])
    return ", ".join(parts)
