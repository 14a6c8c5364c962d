"""The names of the public API."""

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import tempfile
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import protorect
import protorect.methods


def test_type_checkers_see_exactly_the_public_names():
    tree = ast.parse(Path(protorect.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    declared = {name.name for node in guarded.body for name in node.names}
    assert set(protorect.__all__) == declared
    assert all(name.asname == name.name for node in guarded.body for name in node.names)


@pytest.mark.parametrize("name", protorect.__all__)
def test_every_public_name_resolves_and_is_documented(name):
    value = getattr(protorect, name)
    assert name in dir(protorect)
    assert name == "METHODS" or value.__doc__


@pytest.mark.parametrize("name", protorect.__all__)
def test_every_public_name_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # METHODS is a dict, which has no docstring of its own.
    value = protorect.methods if name == "METHODS" else getattr(protorect, name)
    (test,) = doctest.DocTestFinder(recurse=False, exclude_empty=False).find(
        value, name, module=False, globs={}
    )
    assert test.examples, "it has no example"
    assert doctest.DocTestRunner().run(test).failed == 0


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="BDCSPM"):
        _ = protorect.BDCSPM


def test_importing_the_package_does_no_heavy_work():
    code = "import sys, protorect; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_records_with_arrays_compare_by_identity():
    """A generated `__eq__` would compare arrays and raise."""
    with_arrays = [
        record
        for record in dataclasses_of_the_package()
        if any(re.search("NDArray|Tensor", str(field.type)) for field in fields(record))
    ]
    assert len(with_arrays) > 10
    assert [record for record in with_arrays if record.__eq__ is not object.__eq__] == []


def dataclasses_of_the_package():
    for found in pkgutil.walk_packages(protorect.__path__, "protorect."):
        if not found.name.endswith("__main__"):
            for value in vars(importlib.import_module(found.name)).values():
                defined_here = getattr(value, "__module__", None) == found.name
                if defined_here and isinstance(value, type) and is_dataclass(value):
                    yield value
