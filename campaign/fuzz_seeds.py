"""Small valid files of every kind that is read, made by the program itself where it can."""

import json
import pickle
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from protorect._utils.checkpoint import save_tensors
from protorect.backbones.registry import build
from protorect.cli import main
from protorect.datasets.splits import known_split
from protorect.embedding.extract import extract
from protorect.estimators.few_shot import FewShotClassifier
from protorect.evaluation.sampling import sample_episodes
from protorect.labeling.classifier import ImageClassifier
from protorect.labeling.session import LabelingSession

COLORS = {"blue": (30, 60, 200), "green": (40, 180, 60), "red": (210, 50, 40)}
FORMATS = ("png", "jpg", "gif", "bmp", "tif", "webp", "avif", "jp2", "ppm")


def _run(*arguments: object) -> None:
    code = main([str(one) for one in arguments])
    if code not in (0, None):
        raise RuntimeError(f"{arguments} ended with {code}")


def _picture(path: Path, color: tuple[int, int, int], seed: int, side: int = 16) -> None:
    noise = np.random.default_rng(seed).normal(0, 25, (side, side, 3))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.clip(np.array(color) + noise, 0, 255).astype(np.uint8)).save(path)


def _weights(path: Path) -> None:
    torch.manual_seed(0)
    network = build("conv64", channels=3, size=28)
    card = {"kind": "backbone", "backbone": "conv64", "channels": 3, "size": 28}
    save_tensors(path, network.state_dict(), card | {"mean": [0.5] * 3, "std": [0.25] * 3})


def colors(root: Path, each: int = 2) -> None:
    """Examples and pictures of three colors, and a network for them."""
    seed = 0
    for name, color in COLORS.items():
        for number in range(2):
            _picture(root / "examples" / name / f"{number}.png", color, seed := seed + 1)
        for number in range(each):
            _picture(root / "pictures" / name / f"{number}.png", color, seed := seed + 1)
    _weights(root / "net.safetensors")


def features(root: Path) -> None:
    """A feature file, a store, episodes, a saved estimator."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 6)
    rows = (rng.normal(size=(24, 4)) + 3 * rng.normal(size=(4, 4))[labels]).astype(np.float32)
    names, groups = np.array(list("abcd")), np.arange(24)
    np.savez(root / "f.npz", features=rows, labels=labels, class_names=names, groups=groups)
    np.savez(root / "plain.npz", features=rows, labels=labels)
    store = root / "store"
    store.mkdir()
    np.save(store / "features.npy", rows)
    np.save(store / "labels.npy", labels)
    np.save(store / "groups.npy", groups)
    (store / "class_names.json").write_text(json.dumps(list("abcd")))
    head = {"format": "protorect-features", "version": 1, "shape": [24, 4], "dtype": "float32"}
    (store / "manifest.json").write_text(json.dumps(head | {"made_by": {"weights": "x"}}))
    sample_episodes(labels, way=2, shot=1, query=2, episodes=3, seed=0).save(root / "e.npz")
    FewShotClassifier("bd-cspn").fit(rows[::3], labels[::3], X_unlabeled=rows).save(root / "c.st")


def training(root: Path) -> None:
    """A packed data set, a recipe, and a run that was interrupted after its first epoch."""
    for number in range(6):
        for one in range(3):
            _picture(root / "pictures" / f"c{number}" / f"{one}.png", (40 * number, 90, 50), one)
    split = {"train": ["c0", "c1"], "val": ["c2", "c3"], "test": ["c4", "c5"]}
    (root / "split.json").write_text(json.dumps(split))
    packed = ("prepare", "folder", root / "pictures", "--out", root / "packed", "--workers", 1)
    _run(*packed, "--size", 28, "--split", root / "split.json")
    (root / "recipe.toml").write_text(
        'backbone = "conv64"\nseed = 1\nepochs = 1\nbatch_size = 4\nsteps_per_epoch = 1\n'
        'rates = [[0, 0.1], [1, 0.01]]\nbetween_rates = "linear"\nmomentum = 0.9\nflip = true\n'
        "color = 0.1\nvalidation_episodes = 2\n"
    )
    _run("train", root / "packed", "--out", root / "run", "--config", root / "recipe.toml")
    started = json.loads((root / "run/run.json").read_text())
    started["config"]["epochs"] = 2
    (root / "run/run.json").write_text(json.dumps(started))
    test = root / "test.npz"
    _run("extract", root / "run", root / "packed", "--split", "test", "--out", test, "--no-cache")
    _interrupted_extraction(root)
    results = ("--way", 2, "--query", 1, "--shot", 1, "--episodes", 2, "--json", root / "r.json")
    _run("evaluate", test, "--method", "cspn", *results)


def _interrupted_extraction(root: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        extract(root / "run", root / "packed", root / "part.npz", split="test", progress=stop)


def sorting(root: Path) -> None:
    """Pictures sorted by links, examples in every form, a saved classifier, a filled cache."""
    colors(root)
    sort = ("sort", root / "pictures", "--examples", root / "examples", "--network")
    sort = (*sort, root / "net.safetensors", "--out", root / "out", "--parquet")
    _run(*sort, "--no-sheet", "--cache", root / "cache")
    shutil.copytree(root / "pictures", root / "movable")
    moved = ("sort", root / "movable", *sort[2:6], "--out", root / "moved", "--no-sheet", "--move")
    _run(*moved, "--no-cache")
    files = sorted((root / "examples").rglob("*.png"))
    pairs = [(str(file.relative_to(root)), file.parent.name) for file in files]
    (root / "e.csv").write_text("path,label\n" + "".join(f"{p},{c}\n" for p, c in pairs))
    (root / "e.tsv").write_text("label\tpath\n" + "".join(f"{c}\t{p}\n" for p, c in pairs))
    lines = (json.dumps({"file_name": p, "label": c}) for p, c in pairs)
    (root / "metadata.jsonl").write_text("\n".join(lines) + "\n")
    (root / "e.json").write_text(json.dumps([_task(p, c) for p, c in pairs]))
    (root / "list.txt").write_text(
        "".join(f"{one}\n" for one in (root / "pictures").rglob("*.png"))
    )
    _parquet(root / "e.parquet", pairs)
    classifier = ImageClassifier.from_examples(
        root / "examples", source=str(root / "net.safetensors"), cache=False
    )
    classifier.save(root / "classifier.st")


def _task(path: str, label: str) -> dict[str, object]:
    result = {"from_name": "c", "to_name": "i", "type": "choices", "value": {"choices": [label]}}
    return {"data": {"image": path}, "annotations": [{"result": [result], "was_cancelled": False}]}


def _parquet(path: Path, pairs: list[tuple[str, str]]) -> None:
    import pyarrow
    import pyarrow.parquet

    paths, labels = map(list, zip(*pairs, strict=True))
    pyarrow.parquet.write_table(pyarrow.table({"path": paths, "label": labels}), path)


def labeling(root: Path) -> None:
    """A labeling project with acts of every kind."""
    colors(root)
    network = str(root / "net.safetensors")
    with LabelingSession.open(
        root / "project", root / "pictures", root / "examples", source=network, cache=False
    ) as session:
        session.wait(60)
        ids = [one.id for one in session.pictures(limit=100).pictures]
        session.label(ids[:2], "red")
        session.add_class("yellow", ids[2:3])
        session.accept(ids[3:5])
        session.mark_unknown(ids[5:6])
        session.undo()
        session.redo()
        session.rename_class("yellow", "gold")
        session.wait(60)


def archives(root: Path) -> None:
    """Pictures in a zip and in a tar, benchmarks in pickles, boxes, and a class split."""
    for number in range(3):
        for one in range(2):
            _picture(root / "pictures" / f"c{number}" / f"{one}.png", (90 * number, 9, 50), one, 12)
    split = {"train": ["c0"], "val": ["c1"], "test": ["c2"]}
    (root / "split.json").write_text(json.dumps(split))
    files = sorted((root / "pictures").rglob("*.png"))
    with zipfile.ZipFile(root / "p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.relative_to(root))
    with tarfile.open(root / "p.tar", "w") as members:
        members.add(root / "pictures", "pictures")
    with tarfile.open(root / "p.tar.gz", "w:gz") as members:
        members.add(root / "pictures", "pictures")
    _mini_imagenet(root / "mini")
    _cifar(root / "cifar")
    _cub(root / "CUB_200_2011")


def _mini_imagenet(folder: Path) -> None:
    folder.mkdir()
    for number, name in enumerate(("train", "val", "test")):
        pixels = np.full((2, 8, 8, 3), 50 * number, np.uint8)
        document = {"image_data": pixels, "class_dict": {f"c{number}": [0, 1]}}
        content = pickle.dumps(document, protocol=2)
        (folder / f"mini-imagenet-cache-{name}.pkl").write_bytes(content)


def _cifar(folder: Path) -> None:
    (folder / "cifar-100-python").mkdir(parents=True)
    names = [b"c0", b"c1", b"c2"]
    meta = {b"fine_label_names": names}
    part = {b"data": np.zeros((3, 3072), np.uint8), b"fine_labels": [0, 1, 2], b"filenames": names}
    for name, document in (("meta", meta), ("train", part), ("test", part)):
        content = pickle.dumps(document, protocol=2)
        (folder / "cifar-100-python" / name).write_bytes(content)


def _cub(folder: Path) -> None:
    lists = known_split("cub")
    assert lists is not None
    names = {part: [lists[part][0]] for part in ("train", "val", "test")}
    (folder.parent / "cub.json").write_text(json.dumps(names))
    keys = [f"{one[0]}/{number}.png" for one in names.values() for number in range(2)]
    for number, key in enumerate(keys):
        _picture(folder / "images" / key, (9 * number, 90, 9), number, 20)
    rows = list(enumerate(keys, 1))
    (folder / "images.txt").write_text("".join(f"{i} {key}\n" for i, key in rows))
    boxes = "".join(f"{i} 2.0 3.0 10.0 12.0\n" for i, _ in rows)
    (folder / "bounding_boxes.txt").write_text(boxes)


def pictures(root: Path) -> None:
    """One picture of every format among the pictures and the examples."""
    colors(root, each=1)
    image = Image.open(root / "pictures/red/0.png")
    for kind in FORMATS:
        image.save(root / "pictures" / f"some.{kind}")


def networks(root: Path) -> None:
    """An ONNX network, and pictures to embed."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    colors(root, each=1)
    weight = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["features"]),
    ]
    constants = [numpy_helper.from_array(weight, "w")]
    graph = helper.make_graph(nodes, "network", [given], [features], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, root / "net.onnx")


SEEDS: dict[str, Callable[[Path], None]] = {
    one.__name__: one
    for one in (features, training, sorting, labeling, archives, pictures, networks)
}
