"""What is attacked: a file of a seed, how it is mutated, and the command that reads it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from campaign.fuzz_formats import (
    mutated_npy,
    mutated_onnx,
    mutated_parquet,
    mutated_pickle,
    mutated_plan,
    mutated_png,
    mutated_safetensors,
    mutated_sqlite,
    mutated_tar,
    mutated_zip,
)
from campaign.fuzz_mutations import (
    Mutation,
    mutated_act_journal,
    mutated_bytes,
    mutated_json,
    mutated_lines,
    mutated_table,
    mutated_toml,
)
from campaign.fuzz_seeds import FORMATS
from protorect.cli import main
from protorect.errors import ProtorectError


@dataclass(frozen=True)
class Target:
    """One file in a copy of a seed, and what reads it: a command or a function."""

    name: str
    seed: str
    file: str  # a pattern of one file
    mutation: Mutation
    reads: str | Callable[[Path], object]  # {} is the folder of the seed
    share: float = 1.0  # of the cases, beside those of the others

    @property
    def folder_name(self) -> str:
        """Where files that were found are kept."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower())

    def path(self, root: Path) -> Path:
        """The file that is mutated."""
        (path,) = sorted(root.glob(self.file))[:1]
        return path

    def run(self, root: Path) -> int:
        """Let the program read the file; its exit code."""
        if isinstance(self.reads, str):
            return main([word.replace("{}", str(root)) for word in self.reads.split()])
        try:
            self.reads(root)
        except ProtorectError as error:
            print(f"protorect: {error}")
            return 2
        return 0


def _estimator(root: Path) -> None:
    import numpy as np

    from protorect.estimators.few_shot import FewShotClassifier

    loaded = FewShotClassifier.load(root / "c.st")
    rows = np.ones((3, loaded.n_features_in_), np.float32)
    loaded.predict(rows)
    loaded.predict_proba(rows)
    loaded.ood_score(rows)


def _classifier(root: Path) -> None:
    from protorect.labeling.classifier import ImageClassifier

    source = str(root / "net.safetensors")
    loaded = ImageClassifier.load(root / "classifier.st", source=source, cache=False)
    loaded.predict(root / "pictures")


def _session(root: Path) -> None:
    from protorect.labeling.session import LabelingSession

    with LabelingSession.open(root / "project", cache=False) as session:
        session.wait(30)
        session.state()
        shown = session.pictures(limit=10).pictures
        last = session.state().last
        session.pictures(act=last["act"] if last else None)
        session.label([one.id for one in shown[:1]], "red")
        session.undo()
        session.suggest(3)
        session.groups()


_EVALUATE = " --method bd-cspn --way 2 --shot 1 --query 2 --episodes 2"
# Half of the time of a small sorting is that of the default method, which reads no file; it is used
# where the values of a damaged file reach it.
_CSPN = " --method cspn"
_SORT = "sort {}/pictures --network {}/net.safetensors --no-sheet" + _CSPN
_TRAIN = "train {}/packed --config {}/recipe.toml --out {}/"
_PREPARE = " --out {}/new --workers 1 --size 8 --split {}/"
_EXTRACT = "--split test --out {}/new.npz --no-cache"


def _evaluated() -> list[Target]:
    store = "evaluate {}/store" + _EVALUATE
    files = ("features.npy", "labels.npy", "groups.npy")
    documents = ("class_names.json", "manifest.json")
    npz = mutated_zip(mutated_npy)
    return [
        Target("features", "features", "f.npz", npz, "evaluate {}/f.npz" + _EVALUATE, 3),
        Target(
            "validation",
            "features",
            "plain.npz",
            npz,
            "evaluate {}/f.npz --validation {}/plain.npz" + _EVALUATE,
        ),
        Target(
            "episodes",
            "features",
            "e.npz",
            npz,
            "evaluate {}/f.npz --load-episodes {}/e.npz --method bd-cspn",
            2,
        ),
        *(Target(f"store {one}", "features", f"store/{one}", mutated_npy, store) for one in files),
        *(
            Target(f"store {one}", "features", f"store/{one}", mutated_json, store)
            for one in documents
        ),
        Target("estimator", "features", "c.st", mutated_safetensors, _estimator, 3),
    ]


def _trained() -> list[Target]:
    resume = _TRAIN + "run --resume --set epochs=2"
    extract = "extract {}/run {}/packed " + _EXTRACT
    resumed = extract.replace("new.npz", "part.npz")
    publish = "publish {}/run new --results {}/r.json --out {}/published"
    return [
        Target("recipe", "training", "recipe.toml", mutated_toml, _TRAIN + "new --set epochs=1", 2),
        Target("packed manifest", "training", "packed/manifest.json", mutated_json, extract, 2),
        Target("packed pictures", "training", "packed/test.npy", mutated_npy, extract),
        Target("packed labels", "training", "packed/test-labels.npy", mutated_npy, extract),
        Target("packed, training", "training", "packed/train-labels.npy", mutated_npy, resume),
        Target("run", "training", "run/run.json", mutated_json, resume),
        Target("log", "training", "run/log.jsonl", mutated_lines, resume),
        Target("checkpoint", "training", "run/last.safetensors", mutated_safetensors, resume),
        Target("weights", "training", "run/best.safetensors", mutated_safetensors, extract),
        Target("extracted", "training", "test.npz", mutated_zip(mutated_npy), _again(), 1),
        Target("progress", "training", "part.npz.partial/progress.json", mutated_json, resumed),
        Target("part", "training", "part.npz.partial/store/features.npy", mutated_npy, resumed),
        Target("results", "training", "r.json", mutated_json, publish),
        Target(
            "weights of a run", "training", "run/best.safetensors", mutated_safetensors, publish
        ),
    ]


def _again() -> str:
    return "extract {}/run {}/packed --split test --out {}/test.npz --no-cache"


def _examples() -> list[Target]:
    kinds: dict[str, Mutation] = {
        "e.csv": mutated_table,
        "e.tsv": mutated_table,
        "metadata.jsonl": mutated_lines,
        "e.json": mutated_json,
        "e.parquet": mutated_parquet,
        "out/predictions.csv": mutated_table,
        "out/predictions.parquet": mutated_parquet,
    }
    sort = _SORT + " --no-cache --out {}/new --examples "
    more = " --examples {}/examples"
    targets = [
        Target(
            f"examples {name}",
            "sorting",
            name,
            mutation,
            sort + "{}/" + name + more * (name[0] == "o"),
            1.5,
        )
        for name, mutation in kinds.items()
    ]
    listed = _SORT.replace("pictures", "list.txt") + " --no-cache --out {}/new"
    network = sort.replace(_CSPN, "") + "{}/examples"
    cached = _SORT + " --out {}/new --examples {}/examples --cache {}/cache"
    return [
        *targets,
        Target("list of pictures", "sorting", "list.txt", mutated_table, listed + more),
        Target("cache", "sorting", "cache/features.sqlite", mutated_sqlite, cached, 2),
        Target("network", "sorting", "net.safetensors", mutated_safetensors, network),
        Target("classifier", "sorting", "classifier.st", mutated_safetensors, _classifier, 2),
    ]


def _sorted() -> list[Target]:
    journal = ".protorect/journal/*.jsonl"
    again = _SORT + " --no-cache --examples {}/examples --out {}/out"
    corrected = _SORT + " --no-cache --examples {}/examples --examples {}/out --out {}/new"
    export = "export {}/out --format csv --out {}/new.csv"
    return [
        Target("journal, undo", "sorting", f"moved/{journal}", mutated_plan, "undo {}/moved", 3),
        Target("journal, undo links", "sorting", f"out/{journal}", mutated_plan, "undo {}/out", 2),
        Target("journal, sort", "sorting", f"out/{journal}", mutated_plan, again),
        Target("journal, examples", "sorting", f"out/{journal}", mutated_plan, corrected),
        Target("journal, export", "sorting", f"out/{journal}", mutated_plan, export),
        Target("predictions, undo", "sorting", "out/predictions.csv", mutated_table, "undo {}/out"),
    ]


def _labeled() -> list[Target]:
    export = "export {}/project --format csv --out {}/new.csv"
    files: dict[str, Mutation] = {
        "journal.jsonl": mutated_act_journal,
        "pictures.json": mutated_json,
        "project.json": mutated_json,
        "changes.jsonl": mutated_lines,
        "rows.npz": mutated_zip(mutated_npy),
        "features/features.json": mutated_json,
        "features/features.f32": mutated_bytes,
        "features/index.bin": mutated_bytes,
    }
    examples = _SORT + " --no-cache --out {}/new --examples {}/project"
    return [
        *(
            Target(f"project {name}", "labeling", f"project/{name}", mutation, _session)
            for name, mutation in files.items()
        ),
        Target("project, export", "labeling", "project/journal.jsonl", mutated_act_journal, export),
        Target("project, pictures", "labeling", "project/pictures.json", mutated_json, export),
        Target(
            "project, examples", "labeling", "project/journal.jsonl", mutated_act_journal, examples
        ),
    ]


def _packed() -> list[Target]:
    folder = "prepare folder {}/"
    mini = "prepare mini-imagenet {}/mini" + _PREPARE + "split.json"
    cifar = "prepare cifar-fs {}/cifar" + _PREPARE + "split.json"
    cub = "prepare cub {}/CUB_200_2011" + _PREPARE + "cub.json --crop boxes"
    python = "cifar/cifar-100-python/"
    split = _PREPARE + "split.json"
    return [
        Target("zip", "archives", "p.zip", mutated_zip(mutated_png), folder + "p.zip" + split, 2),
        Target("tar", "archives", "p.tar", mutated_tar(mutated_png), folder + "p.tar" + split, 2),
        Target("tar.gz", "archives", "p.tar.gz", mutated_bytes, folder + "p.tar.gz" + split),
        Target("class split", "archives", "split.json", mutated_json, folder + "pictures" + split),
        Target("mini pickle", "archives", "mini/*train.pkl", mutated_pickle, mini, 3),
        Target("cifar meta", "archives", f"{python}meta", mutated_pickle, cifar),
        Target("cifar train", "archives", f"{python}train", mutated_pickle, cifar),
        Target("boxes", "archives", "CUB_200_2011/bounding_boxes.txt", mutated_table, cub),
        Target("list of CUB", "archives", "CUB_200_2011/images.txt", mutated_table, cub),
    ]


def _embedded() -> list[Target]:
    sort = _SORT + " --no-cache --out {}/new --examples {}/examples"
    sheet = sort.replace(" --no-sheet", "").replace(_CSPN, "")
    one = "{}/pictures/red {}/pictures/some."
    onnx = "extract onnx:{}/net.onnx {}/examples --out {}/new.npz --no-cache"
    example = "examples/red/0.png"
    return [
        *(
            Target(
                f"picture {kind}",
                "pictures",
                f"pictures/some.{kind}",
                mutated_png,
                sort.replace("{}/pictures", one + kind),
            )
            for kind in FORMATS
        ),
        Target("picture, sheet", "pictures", "pictures/some.png", mutated_png, sheet),
        Target("example picture", "pictures", example, mutated_png, sort),
        Target("onnx", "networks", "net.onnx", mutated_onnx, onnx, 3),
    ]


TARGETS = [
    *_evaluated(),
    *_trained(),
    *_examples(),
    *_sorted(),
    *_labeled(),
    *_packed(),
    *_embedded(),
]
