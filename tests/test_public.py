"""The names of the public API."""

import ast
import doctest
import subprocess
import sys
import tempfile
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
