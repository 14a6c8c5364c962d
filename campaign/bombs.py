"""Small files that claim to be huge: each is used or refused within bounded memory and time.

Every bomb is given to a command in a process of its own, whose peak of memory is compared with that
of the same command on a harmless file.
"""

from __future__ import annotations

import gzip
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from protorect.report.table import Table

DECODING_MB = 600  # of `PROTORECT_DECODING_MB`, for all threads together
BUDGET_MB = 900  # beyond the harmless file: decoding, and the buffers of other libraries
BUDGET_SECONDS = 60.0
_SPLIT = '{"train": ["c0"], "val": ["c1"], "test": ["c2"]}'
_COMMAND = "import sys; from protorect.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass(frozen=True)
class Bomb:
    """A file that claims more than it holds, and the command that meets it."""

    name: str
    make: Callable[[Path], None]
    command: str  # {} is its folder
    codes: tuple[int, ...]  # 0 or 1 if it can be used within the budget, 2 if it is refused


def run(seconds: float) -> dict[str, Any]:
    """Try every bomb, two at a time; returns peaks of memory, times and failures."""
    end = time.monotonic() + seconds
    with (
        tempfile.TemporaryDirectory(prefix="protorect-bombs-") as folder,
        ThreadPoolExecutor(2) as pool,
    ):
        found = list(pool.map(lambda bomb: _tried(bomb, Path(folder), end), BOMBS))
    measured = {bomb.name: one for bomb, one in zip(BOMBS, found, strict=True) if one}
    failures = [
        f"{bomb.name}: {reason}"
        for bomb, one in zip(BOMBS, found, strict=True)
        for reason in (_problems(bomb, one) if one else ["there was no time for it"])
    ]
    return {"bombs": measured, "budget_megabytes": BUDGET_MB, "failures": failures}


def _tried(bomb: Bomb, folder: Path, end: float) -> dict[str, Any]:
    """What a bomb led to; nothing if it is too late for it."""
    if time.monotonic() > end:
        return {}
    root = folder / bomb.name.replace(" ", "-")
    _common(root)
    harmless = _measured([bomb.command.split()[0], "--help"], root)
    bomb.make(root)
    found = _measured(bomb.command.replace("{}", str(root)).split(), root)
    found["megabytes"] = round(found["megabytes"] - harmless["megabytes"])
    shutil.rmtree(root)
    return found


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """The table of docs/reliability.md."""
    rows = [
        [
            name,
            f"{one['bytes']:,}",
            f"{one['megabytes']:,}",
            f"{one['seconds']:.1f}",
            "refused" if one["code"] == 2 else "reported" if one["code"] == 1 else "used",
        ]
        for name, one in measured["bombs"].items()
    ]
    caption = f"Small files that claim to be huge; at most {measured['budget_megabytes']} MB."
    header = ["file", "bytes", "MB more than `--help`", "seconds", "is"]
    return {"bombs": Table(caption, header, rows)}


def _problems(bomb: Bomb, found: dict[str, Any]) -> Iterator[str]:
    if found["code"] not in bomb.codes:
        yield f"exit code {found['code']}: {found['message']}"
    if "Traceback" in found["message"]:
        yield f"traceback: {found['message'][-200:]}"
    if found["megabytes"] > BUDGET_MB:
        yield f"{found['megabytes']} MB"
    if found["seconds"] > BUDGET_SECONDS:
        yield f"{found['seconds']} seconds"


def _measured(arguments: list[str], root: Path) -> dict[str, Any]:
    """Run a command; its exit code, seconds and peak of memory."""
    variables = {"PROTORECT_DECODING_MB": str(DECODING_MB), "OMP_NUM_THREADS": "1"}
    size = sum(one.stat().st_size for one in root.glob("bomb*"))
    start = time.monotonic()
    with (root / "output").open("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, *arguments],
            env=os.environ | variables | {"TMPDIR": str(root), "XDG_CACHE_HOME": str(root)},
            stdout=output,
            stderr=output,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return {
        "bytes": size,
        "code": process.returncode,
        "seconds": round(time.monotonic() - start, 1),
        "megabytes": usage.ru_maxrss / 1024,
        "message": (root / "output").read_text(errors="replace")[-300:],
    }


def _common(root: Path) -> None:
    """Harmless examples and pictures beside the bomb, and a class split."""
    from campaign.fuzz_seeds import colors

    root.mkdir(parents=True)
    colors(root, each=1)
    (root / "split.json").write_text(_SPLIT)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check


def _png(root: Path) -> None:
    """9999 x 9999 pixels, RGBA of 16 bits: 800 MB, in 777 KB."""
    side, packer = 9999, zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1 + side * 8)) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 16, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)
    for number in range(4):
        (root / "pictures" / f"bomb{number}.png").write_bytes(data)
    (root / "bomb.png").write_bytes(data)


def _gif(root: Path) -> None:
    """A GIF that claims 15,000 x 15,000 pixels."""
    size = struct.pack("<HH", 15000, 15000)
    screen = b"GIF89a" + size + b"\x80\0\0" + b"\0\0\0\xff\xff\xff"
    data = screen + b"!\xf9\x04\x09\0\0\0\0,\0\0\0\0" + size + b"\0\x02\x02\x4c\x01\0;"
    for number in range(4):
        (root / "pictures" / f"bomb{number}.gif").write_bytes(data)
    (root / "bomb.gif").write_bytes(data)


def _npz(root: Path) -> None:
    """Zeros (800,000, 1,024) of float32: 3.3 GB, in 3 MB."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (800_000, 1024)}
    with zipfile.ZipFile(root / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("features.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array_header_1_0(file, header)
            for _ in range(800):
                file.write(bytes(4 * 1024 * 1000))
        with archive.open("labels.npy", "w") as file:
            np.lib.format.write_array(file, np.zeros(800_000, np.int64))


def _pickle(root: Path) -> None:
    """Lists of a list twice, 200 levels: 2^200 values, in 2 KB."""
    nested: list[Any] = []
    for _ in range(200):
        nested = [nested, nested]
    (root / "mini").mkdir()
    for name in ("train", "val", "test"):
        pixels = np.zeros((2, 8, 8, 3), np.uint8)
        content = pickle.dumps({"image_data": pixels, "class_dict": {"c0": nested}}, protocol=2)
        (root / "mini" / f"mini-imagenet-cache-{name}.pkl").write_bytes(content)
    (root / "bomb.pkl").write_bytes(content)


def _tar(root: Path) -> None:
    """A picture of 4 GB of zeros in a .tar.gz of 4 MB, whose parts are compressed one by one."""
    member = tarfile.TarInfo("c0/1.png")
    part, member.size = 2**26, 2**32
    zeros = gzip.compress(bytes(part))
    data = gzip.compress(member.tobuf()) + zeros * (member.size // part)
    (root / "bomb.tar.gz").write_bytes(data + gzip.compress(bytes(2 * 512)))


def _zip(root: Path) -> None:
    """A picture of 1 GB of zeros in a zip of 1 MB."""
    with zipfile.ZipFile(root / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("c0/1.png", "c1/1.png", "c2/1.png"):
            with archive.open(name, "w") as file:
                for _ in range(256):
                    file.write(bytes(2**20))


def _onnx(inputs: tuple[int, int], inner: int) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, *inputs])
        out = helper.make_tensor_value_info("features", TensorProto.FLOAT, None)
        shape = numpy_helper.from_array(np.array([inner, inner], np.int64), "s")
        nodes = [
            helper.make_node("ConstantOfShape", ["s"], ["big"]),
            helper.make_node("ReduceMean", ["big"], ["one"], keepdims=0),
            helper.make_node("GlobalAveragePool", ["x"], ["p"]),
            helper.make_node("Add", ["p", "one"], ["features"]),
        ]
        graph = helper.make_graph(nodes, "network", [given], [out], [shape])
        opset = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), root / "bomb.onnx")

    return make


def _json(root: Path) -> None:
    """Lists in each other, 50 million deep."""
    (root / "bomb.json").write_bytes(b"[" * 50_000_000)


_SORT = "sort {}/pictures --examples {}/examples --network {}/net.safetensors --out {}/new"
_PREPARE = " --out {}/new --workers 1 --size 8 --split {}/split.json"
_EXTRACT = "extract onnx:{}/bomb.onnx {}/examples --out {}/new.npz --no-cache"
BOMBS = (
    Bomb("PNG", _png, _SORT, (0, 1)),
    Bomb("GIF", _gif, _SORT, (0, 1)),
    Bomb("npz", _npz, "evaluate {}/bomb.npz --episodes 2", (2,)),
    Bomb("pickle", _pickle, "prepare mini-imagenet {}/mini" + _PREPARE, (2,)),
    Bomb("tar.gz", _tar, "prepare folder {}/bomb.tar.gz" + _PREPARE, (2,)),
    Bomb("zip", _zip, "prepare folder {}/bomb.zip" + _PREPARE, (2,)),
    Bomb("ONNX, claimed input", _onnx((100_000, 100_000), 1), _EXTRACT, (2,)),
    Bomb("ONNX, values inside", _onnx((8, 8), 100_000), _EXTRACT, (2,)),
    Bomb("JSON", _json, "sort {}/pictures --examples {}/bomb.json --out {}/new", (2,)),
)
