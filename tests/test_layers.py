"""Imports go down only. The plan is drawn in docs/architecture.md."""

import ast
import sys
from pathlib import Path

import protorect

SOURCE = Path(protorect.__file__).parent
LAYERS = [
    {"__main__"},
    {"cli"},
    {"demo", "labelling", "paper"},
    {"report"},
    {"publishing", "fine_tuning"},
    {"extraction"},
    {"training"},
    {"selection", "comparison"},
    {"evaluation"},
    {"features", "episodes"},
    {"methods", "estimators"},
    {"data", "backbones", "feature_store"},
    {"checkpoint", "arrays", "draws", "labels", "tensors"},
    {"functional", "theory", "stats"},
    {"unitrows"},
    {"files", "memory", "processes", "pretrained", "versions", "options"},
    {"errors"},
]
DEPTH = {room: depth for depth, rooms in enumerate(LAYERS) for room in rooms}


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("protorect"):
            parts = (node.module or "").split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {name.name for name in node.names}
        elif isinstance(node, ast.Import):
            names = [name.name.split(".") for name in node.names]
            rooms |= {parts[1] for parts in names if parts[0] == "protorect" and len(parts) > 1}
    return rooms - {"__version__"}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def modules() -> list[Path]:
    return [
        path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem != "__init__"
    ]


def test_every_room_has_its_place():
    assert {room_of(path) for path in modules()} == set(DEPTH)


def test_imports_go_down_only():
    upward = [
        f"{path.relative_to(SOURCE)} imports {room}"
        for path in modules()
        for room in imported_rooms(path)
        if room != room_of(path) and DEPTH[room] <= DEPTH[room_of(path)]
    ]
    # Rooms of one storey may lean on each other only where named here.
    allowed = {"theory.py imports functional"}
    assert set(upward) <= allowed


def test_equations_know_torch_and_nothing_else():
    tree = ast.parse((SOURCE / "functional.py").read_text())
    tops = {
        (node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    }
    assert tops - set(sys.stdlib_module_names) == {"torch", "protorect"}


def test_only_the_command_line_prints():
    printing = [
        str(path.relative_to(SOURCE))
        for path in modules()
        if room_of(path) != "cli"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    ]
    assert printing == []
