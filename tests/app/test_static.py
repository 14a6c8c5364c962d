"""The files of the page: small, without a framework, and without any other address."""

import re

from protorect.app.server import STATIC

SCRIPTS = sorted((STATIC / "js").rglob("*.js"))
LARGEST = 100_000  # bytes of JavaScript
NAMESPACE = "http://www.w3.org/2000/svg"


def test_there_are_few_bytes_of_javascript():
    assert sum(path.stat().st_size for path in SCRIPTS) <= LARGEST


def test_a_script_has_one_subject_and_says_which():
    for path in SCRIPTS:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("// "), path.name
        assert len(lines) <= 320, path.name


def test_every_file_that_is_imported_is_here():
    for path in SCRIPTS:
        imported = re.findall(r"^import .*?'(\.[^']+)';$", path.read_text(encoding="utf-8"), re.M)
        assert all((path.parent / one).is_file() for one in imported), path.name


def test_nothing_comes_from_another_address():
    for path in [*SCRIPTS, *STATIC.glob("*.*")]:
        text = path.read_text(encoding="utf-8").replace(NAMESPACE, "")
        assert "//" not in re.sub(r"(^|\s)//.*$|/\*.*?\*/", "", text, flags=re.M | re.S), path.name
