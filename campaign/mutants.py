"""`python -m campaign.mutants`: break the core in a hundred small ways; its tests must notice.

Each mutant is a copy of the sources with one operator, comparison or constant of a module changed.
Only the tests of that module run, until the first that fails. Writes results/mutants.json.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "mutants.json"
SECONDS = 120  # for the tests of one mutant; one that takes longer is counted apart
MODULES = {
    "core/functional.py": "core/test_functional.py core/test_golden.py",
    "core/unit_rows.py": "core/test_unit_rows.py",
    "core/statistics.py": "core/test_statistics.py",
    "methods/bd_cspn_plus.py": "methods/test_bd_cspn_plus.py",
    "uncertainty/calibration.py": "uncertainty/test_calibration.py",
    "uncertainty/ood.py": "uncertainty/test_ood.py",
    "evaluation/result.py": "evaluation/test_evaluate.py evaluation/test_compare.py",
    "labeling/placements.py": "sorting/test_journal.py",
    "sorting/placing.py": "sorting/test_folder.py",
    "labeling/act_journal.py": "labeling/test_act_journal.py",
    "labeling/acts.py": "labeling/test_acts.py",
}
# Mutants that change nothing that can be seen, by module and line of code, with the reason.
EQUIVALENT: dict[tuple[str, str], str] = {}
_SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Any]]:
    """Every node that can be changed: the node, its field, and the new value."""
    skipped = {id(part) for node in ast.walk(tree) for part in _not_code(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPS:
            yield node, "op", _SWAPS[type(node.op)]()
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
            yield node, "ops", [_SWAPS[type(node.ops[0])](), *node.ops[1:]]
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            yield node, "value", not node.value if node.value in (True, False) else node.value + 1
        elif isinstance(node, ast.If | ast.IfExp):
            yield node, "test", ast.UnaryOp(ast.Not(), node.test)


def _not_code(node: ast.AST) -> Iterator[ast.AST]:
    """Types, and texts of messages: what is not computed with."""
    parts = [getattr(node, name, None) for name in ("annotation", "returns")]
    parts += [node] if isinstance(node, ast.Raise | ast.JoinedStr) else []
    for part in filter(None, parts):
        yield from ast.walk(part)


def mutants(module: str, count: int, seed: int = 0) -> list[tuple[str, int, str]]:
    """Changed sources of a module, each with the line and the code that was changed."""
    tree = ast.parse((ROOT / "src/protorect" / module).read_text())
    places = range(sum(1 for _ in changes(tree)))
    made = []
    for place in sorted(Random(f"{seed} {module}").sample(places, min(count, len(places)))):
        mutant = copy.deepcopy(tree)
        node, field, value = list(changes(mutant))[place]
        line, before = node.lineno, ast.unparse(node)  # type: ignore[attr-defined]
        setattr(node, field, value)
        after = ast.unparse(ast.fix_missing_locations(node))
        made.append((ast.unparse(mutant), line, f"{before[:60]} -> {after[:60]}"))
    return made


def tested(module: str, source: str) -> str:
    """How the tests of a module with this source end: "passed", "failed" or "timeout"."""
    with tempfile.TemporaryDirectory(prefix="protorect-mutant-") as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src", symlinks=True)
        (Path(folder) / "src/protorect" / module).write_text(source)
        process = multiprocessing.get_context("fork").Process(target=_test, args=(folder, module))
        process.start()
        process.join(SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            return "timeout"
        # 0: all passed, 1: one failed, 2: the mutant cannot even be imported. Anything else is a
        # fault of this tool, and must not count as noticed.
        if process.exitcode not in (0, 1, 2):
            raise RuntimeError(f"the tests of {module} ended with {process.exitcode}")
        return "failed" if process.exitcode else "passed"


def _test(folder: str, module: str) -> None:
    """Run the tests on the copy."""
    import pytest

    os.chdir(ROOT)
    sys.path.insert(0, f"{folder}/src")
    sys.dont_write_bytecode = True
    os.environ |= {"PYTHONPATH": f"{folder}/src", "OMP_NUM_THREADS": "1"}
    for name in [name for name in sys.modules if name.split(".")[0] == "protorect"]:
        del sys.modules[name]  # the frame of the campaign has imported the real one
    import protorect

    if not str(protorect.__file__).startswith(folder):
        os._exit(9)
    tests = [f"tests/{name}" for name in MODULES[module].split()]
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", f"--basetemp={folder}/tmp"]
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        os._exit(int(pytest.main([*tests, *options])))


def main() -> int:
    """Try all mutants, as many as there is time for, and write what survived."""
    parser = argparse.ArgumentParser(prog="python -m campaign.mutants", description=__doc__)
    parser.add_argument("--each", type=int, default=10, help="mutants per module")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("modules", nargs="*", default=list(MODULES))
    options = parser.parse_args()
    import sklearn.base  # noqa: F401 (imported before the processes are forked)
    import torch  # noqa: F401

    end, results = time.monotonic() + options.seconds, _earlier()
    for module in options.modules:
        if tested(module, (ROOT / "src/protorect" / module).read_text()) != "passed":
            raise RuntimeError(f"the tests of {module} fail without a mutant")
        found: dict[str, Any] = {"mutants": 0, "timeouts": 0, "survivors": []}
        for source, line, change in mutants(module, options.each):
            if time.monotonic() > end:
                break
            found["mutants"] += 1
            end_of_tests = tested(module, source)
            found["timeouts"] += end_of_tests == "timeout"  # not known to be noticed
            if end_of_tests == "passed" and (module, change) not in EQUIVALENT:
                found["survivors"].append(f"line {line}: {change}")
                print(module, found["survivors"][-1], flush=True)
        if found["mutants"]:
            print(module, found["mutants"], flush=True)
            results[module] = found
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if any(one["survivors"] for one in results.values()) else 0


def _earlier() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


if __name__ == "__main__":
    sys.exit(main())
