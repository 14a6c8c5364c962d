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
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.connection import wait
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from protorect.report.table import Table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results" / "mutants.json"
WORKERS = 2  # processes at a time
SECONDS = 300  # for the tests of a module
# Those of a mutant may take so many times as long, and at least this; one that takes longer is
# counted apart.
_PATIENCE, _LEAST_SECONDS = 3, 20
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
# Mutants that change nothing that can be seen, by module, line of code and change, with the reason.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "uncertainty/ood.py",
        "similarity = rule.of_rows(rule.neighbors, rule.neighbors @ rule.prototypes.mT)[0]",
        "0 -> True",
    ): "an axis more, and quantiles are those of all values",
    (
        "labeling/placements.py",
        'head: dict[str, Any] = next(lines, {"format": 0})',
        "0 -> True",
    ): "an empty journal is refused by its missing fields, whatever its format",
}
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


class Mutant(NamedTuple):
    """A changed source of a module."""

    source: str
    line: int
    code: str  # of the line
    change: str


def mutants(module: str, count: int, seed: int = 0) -> list[Mutant]:
    """Changed sources of a module."""
    text = (ROOT / "src/protorect" / module).read_text()
    tree, lines = ast.parse(text), text.splitlines()
    places = range(sum(1 for _ in changes(tree)))
    made = []
    for place in sorted(Random(f"{seed} {module}").sample(places, min(count, len(places)))):
        mutant = copy.deepcopy(tree)
        node, field, value = list(changes(mutant))[place]
        line, before = node.lineno, ast.unparse(node)  # type: ignore[attr-defined]
        setattr(node, field, value)
        after = ast.unparse(ast.fix_missing_locations(node))
        code = lines[line - 1].split("  #")[0].strip()
        made.append(Mutant(ast.unparse(mutant), line, code, f"{before[:60]} -> {after[:60]}"))
    return made


class Trial:
    """The tests of a module with this source, in a process of their own."""

    def __init__(self, module: str, source: str, seconds: float) -> None:
        self.module, self.started, self.end = module, time.monotonic(), time.monotonic() + seconds
        self._folder = tempfile.TemporaryDirectory(prefix="protorect-mutant-")
        shutil.copytree(ROOT / "src", Path(self._folder.name) / "src", symlinks=True)
        (Path(self._folder.name) / "src/protorect" / module).write_text(source)
        arguments = (self._folder.name, module)
        self.process = multiprocessing.get_context("fork").Process(target=_test, args=arguments)
        self.process.start()

    def result(self) -> str:
        """How they ended: "passed", "failed" or "timeout"; empty while they run."""
        late = time.monotonic() > self.end
        if self.process.is_alive() and not late:
            return ""
        if late:
            self.process.kill()
        self.process.join()
        self._folder.cleanup()
        # 0: all passed, 1: one failed, 2: the mutant cannot even be imported. Anything else is a
        # fault of this tool, and must not count as noticed.
        if not late and self.process.exitcode not in (0, 1, 2):
            raise RuntimeError(f"the tests of {self.module} ended with {self.process.exitcode}")
        return "timeout" if late else "failed" if self.process.exitcode else "passed"


def tried(module: str, sources: Sequence[str], seconds: float, end: float) -> list[str]:
    """The results of sources, one process per core at a time; fewer if the time ends."""
    results, running, waiting = [""] * len(sources), dict[int, Trial](), list(enumerate(sources))
    while waiting or running:
        while waiting and len(running) < WORKERS and time.monotonic() < end:
            number, source = waiting.pop(0)
            running[number] = Trial(module, source, seconds)
        if not running:
            break
        wait([one.process.sentinel for one in running.values()], timeout=1.0)
        for number, one in list(running.items()):
            if found := one.result():
                results[number] = found
                del running[number]
    return [one for one in results if one]


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
        began = time.monotonic()
        if tried(module, [(ROOT / "src/protorect" / module).read_text()], SECONDS, end) != [
            "passed"
        ]:
            raise RuntimeError(f"the tests of {module} fail without a mutant")
        slow = max(_LEAST_SECONDS, _PATIENCE * (time.monotonic() - began))
        made = mutants(module, options.each)
        ends = tried(module, [one.source for one in made], slow, end)
        if ends:
            results[module] = _summary(module, made, ends)
            print(module, results[module], round(time.monotonic() - began), "s", flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if any(one["survivors"] for one in results.values()) else 0


def _summary(module: str, made: Sequence[Mutant], ends: Sequence[str]) -> dict[str, Any]:
    """How many mutants there were, and which of them nobody noticed."""
    passed = [made[number] for number, end in enumerate(ends) if end == "passed"]
    reasons = [EQUIVALENT.get((module, one.code, one.change)) for one in passed]
    unnoticed = [f"line {one.line}: {one.change}" for one in passed]
    pairs = list(zip(unnoticed, reasons, strict=True))
    return {
        "mutants": len(ends),
        "timeouts": list(ends).count("timeout"),  # not known to be noticed
        "equivalent": [f"{name}: {reason}" for name, reason in pairs if reason],
        "survivors": [name for name, reason in pairs if not reason],
    }


def tables(measured: dict[str, Any]) -> dict[str, Table]:
    """The table of docs/reliability.md: mutants by module, and what nobody noticed."""
    header = ["module", "mutants", "noticed", "too slow", "equivalent", "survivors"]
    rows = []
    for module, one in measured.items():
        unseen = one["timeouts"] + len(one["equivalent"]) + len(one["survivors"])
        counts = one["mutants"], one["mutants"] - unseen, one["timeouts"], len(one["equivalent"])
        rows.append([f"`{module}`", *map(str, counts), _listed(one["survivors"])])
    return {"mutants": Table("", header, rows)}


def _listed(survivors: list[str]) -> str:
    return "<br>".join(f"`{one.replace('|', chr(92) + '|')}`" for one in survivors) or "0"


def _earlier() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


if __name__ == "__main__":
    sys.exit(main())
