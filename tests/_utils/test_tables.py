"""Tables in CSV files."""

import csv
import io

import pytest
from hypothesis import given

from helpers.damage import damaged_files, damages, read_or_refused
from protorect._utils.tables import any_text, read_table, table_text
from protorect.errors import DataError

COLUMNS = ("path", "label")


def table(path, content, **options):
    path.write_bytes(content)
    return read_table(path, COLUMNS, **options)


@pytest.mark.parametrize(
    "content",
    [
        b"path,label\na.png,x\nb.png,y\n",
        b"\xef\xbb\xbfPath, LABEL \r\n a.png,x\r\nb.png, y",
        b"\nlabel,size,path\n\nx,1,a.png\n,,\ny,2,b.png,more\n",
        b'path,label\n"a.png","x"\nb.png,y\n',
    ],
    ids=["plain", "byte-order mark", "columns in another order", "quoted"],
)
def test_cells_are_found_by_the_names_in_the_header(tmp_path, content):
    rows = table(tmp_path / "t.csv", content)
    assert [cells for _, cells in rows] == [["a.png", "x"], ["b.png", "y"]]


def test_a_row_has_its_file_and_line(tmp_path):
    rows = table(tmp_path / "t.csv", b'path,label\n"a\nb",x\n\nc,y\n')
    assert [where for where, _ in rows] == [f"{tmp_path}/t.csv, line {n}" for n in (3, 5)]


def test_a_table_without_a_header_begins_with_the_columns(tmp_path):
    rows = table(tmp_path / "t.csv", b"a.png,x\nb.png,y,1\n", header_required=False)
    assert [cells for _, cells in rows] == [["a.png", "x"], ["b.png", "y"]]
    assert table(tmp_path / "t.csv", b"", header_required=False) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "should be a CSV file with the columns path,label"),
        (b"a.png,x\n", "should be a CSV file with the columns path,label"),
        (b"path\na.png\n", "should be a CSV file with the columns path,label"),
        (b"path,label\na.png,x\nb.png\n", r"t\.csv, line 3: 'b\.png' is not path,label"),
        (b"path,label\na.png," + b"x" * 200_000, r"t\.csv, line \d: field larger than"),
        (b"path,label\n\xff,x\n", r"cannot read .*t\.csv: byte 11 is not UTF-8"),
    ],
)
def test_a_damaged_table_is_refused(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        table(tmp_path / "t.csv", content)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_any_text(encoding):
    assert any_text("path,gr\xf6\xdfe".encode(encoding)) == "path,gr\xf6\xdfe"
    assert any_text(b"") == ""


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_other_names_and_optional_columns(tmp_path, separator):
    text = "a,b;File;CLASS;size\nx;1.png;cat;2\n;2.png;dog\n".replace(";", separator)
    text = text.replace("a,b", "first")
    columns = (("path", "file"), ("label", "class"))
    rows = read_table(tmp_path / "t", columns, optional=("size", "none"), text=text)
    assert [cells for _, cells in rows] == [["1.png", "cat", "2", ""], ["2.png", "dog", "", ""]]


@damaged_files
@given(damages(b'path,label\n"a, b.png",x\nc.png,y\n'))
def test_a_damaged_table_has_all_cells_or_is_refused(tmp_path, content):
    def whole(rows):
        return all(len(cells) == 2 and "line" in where for where, cells in rows)

    read_or_refused(tmp_path / "t.csv", content, lambda path: read_table(path, COLUMNS), whole)


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x", "\tx", "＝1", "'=1", "''=1"])
def test_a_formula_is_written_as_text_and_read_as_it_was(tmp_path, cell):
    written = table_text(COLUMNS, [("a.png", cell)])
    assert list(csv.reader(io.StringIO(written, newline="")))[1][1].startswith("'")
    path = tmp_path / "t.csv"
    path.write_text(written, encoding="utf-8", newline="")
    assert [cells for _, cells in read_table(path, COLUMNS)] == [["a.png", cell]]
