"""The flat public surface."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import protorect


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


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="BDCSPM"):
        _ = protorect.BDCSPM


def test_importing_the_package_does_no_heavy_work():
    code = "import sys, protorect; assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
