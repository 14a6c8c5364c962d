"""Imports go one way, through the nine layers that docs/architecture.md draws."""

import ast
import sys
from pathlib import Path

import pytest

import protorect

SOURCE = Path(protorect.__file__).parent
# From the top down. A package may import what stands in a lower layer, and nothing else.
LAYERS = [
    {"__main__", "cli"},
    {"app", "scale", "demo"},
    {"sorting", "paper"},
    {"labeling", "report", "training"},
    {"evaluation", "estimators"},
    {"embedding", "uncertainty"},
    {"methods", "datasets"},
    {"core", "backbones", "images"},
    {"_utils", "errors"},
]
PLANNED = {"scale"}
WITHIN_A_LAYER = {("__main__", "cli"), ("_utils", "errors")}
DEPTH = {package: depth for depth, packages in enumerate(LAYERS) for package in packages}
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_packages(tree: ast.Module) -> set[str]:
    packages = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "protorect":
            parts = (node.module or "").split(".")
            packages |= {parts[1]} if len(parts) > 1 else {name.name for name in node.names}
        elif isinstance(node, ast.Import):
            names = [name.name.split(".") for name in node.names]
            packages |= {parts[1] for parts in names if parts[0] == "protorect" and len(parts) > 1}
    return packages - {"__version__"}


def wrong_imports(package: str, imported: set[str]) -> set[str]:
    return {
        other
        for other in imported - {package}
        if DEPTH[other] <= DEPTH[package] and (package, other) not in WITHIN_A_LAYER
    }


def test_every_package_has_its_layer():
    assert {package_of(path) for path in MODULES} | PLANNED == set(DEPTH)


def test_the_root_has_six_modules_at_most():
    assert len(list(SOURCE.glob("*.py"))) <= 6


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_down_only(path):
    assert wrong_imports(package_of(path), imported_packages(ast.parse(path.read_text()))) == set()


@pytest.mark.parametrize(
    ("package", "line", "wrong"),
    [
        ("core", "from protorect.methods.tim import tim", {"methods"}),
        ("core", "from protorect.images import decode", {"images"}),
        ("methods", "import protorect.core.functional", set()),
        ("errors", "from protorect._utils.text import printable", {"_utils"}),
        ("report", "def f():\n    from protorect import training", {"training"}),
    ],
)
def test_a_wrong_import_would_be_found(package, line, wrong):
    assert wrong_imports(package, imported_packages(ast.parse(line))) == wrong


def test_equations_know_torch_and_nothing_else():
    tree = ast.parse((SOURCE / "core" / "functional.py").read_text())
    tops = {
        (node.module or "").split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    }
    assert tops - set(sys.stdlib_module_names) == {"torch", "protorect"}


def test_only_the_command_line_prints():
    printing = [
        str(path.relative_to(SOURCE))
        for path in MODULES
        if package_of(path) != "cli"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    ]
    assert printing == []
