"""What may not be read or written is named, with exit code 2, and nothing is changed."""

import pytest

from helpers.packed import pack_noise
from helpers.privileges import run_commands
from protorect.cli import main


@pytest.fixture
def kept(colors, tmp_path):
    """A sorted folder, a packed data set, and a folder that may not be written to."""
    arguments = [str(colors.pictures), "--examples", str(colors.examples), "--no-sheet"]
    arguments += ["--network", colors.weights, "--no-cache", "--out", str(colors.out)]
    assert main(["sort", *arguments]) == 0
    pack_noise(tmp_path / "packed", 16, splits=("train", "test"))
    (tmp_path / "kept").mkdir(mode=0o555)
    return colors


def test_a_folder_that_may_not_be_written_to_is_named(kept, tmp_path):
    out, packed = tmp_path / "kept", tmp_path / "packed"
    sort = ["sort", kept.pictures, "--examples", kept.examples, "--network", kept.weights]
    extract = ["extract", kept.weights, kept.pictures, "--no-cache", "--out"]
    ends = run_commands(
        [
            [*sort, "--no-cache", "--out", out / "new"],
            [*sort, "--no-cache", "--out", out],
            [*sort, "--no-cache", "--out", tmp_path / "new", "--csv", out / "new.csv"],
            ["label", kept.pictures, "--network", kept.weights, "--out", out / "new"],
            ["export", kept.out, "--format", "csv", "--out", out / "new.csv"],
            ["export", kept.out, "--format", "folders", "--out", out / "new"],
            ["train", packed, "--out", out / "new", "--set", "epochs=1"],
            ["train", packed, "--out", out, "--set", "epochs=1"],
            ["prepare", "folder", kept.pictures, "--out", out / "new", "--size", "8"],
            [*extract, out / "new.npz"],
            [*extract, out / "new"],
        ]
    )
    for code, said in ends:
        assert (code, said.count("\n")) == (2, 1), said
        assert said.startswith("protorect: cannot ")
        assert str(out) in said
        assert "Permission denied" in said or "write-protected" in said
    assert list(out.iterdir()) == []
    assert not (tmp_path / "new").exists()


def test_what_may_not_be_read_is_named(kept, tmp_path):
    packed, journal = tmp_path / "packed", kept.out / ".protorect" / "journal"
    sort = ["sort", kept.pictures, "--network", kept.weights, "--no-cache", "--out"]
    before = kept.tree()
    train = ["train", packed, "--out", tmp_path / "run"]
    for hidden in (
        {packed: [train], kept.examples: [[*sort, tmp_path / "new", "--examples", kept.examples]]},
        {
            packed / "manifest.json": [train],
            journal: [
                [*sort, kept.out, "--examples", kept.examples],
                ["undo", kept.out],
                ["export", kept.out, "--format", "csv", "--out", tmp_path / "new.csv"],
                ["label", kept.out],
            ],
        },
    ):
        modes = {path: path.stat().st_mode for path in hidden}
        for path in hidden:
            path.chmod(0)
        ends = run_commands([command for commands in hidden.values() for command in commands])
        for path, mode in modes.items():
            path.chmod(mode)
        names = [path for path, commands in hidden.items() for _ in commands]
        assert ends == [
            (2, f"protorect: cannot read {path}: Permission denied.\n") for path in names
        ]
    assert kept.tree() == before


@pytest.mark.parametrize("own", ["journal", "written"])
def test_links_stay_where_the_next_sorting_cannot_be_recorded(kept, own):
    folder, before = kept.out / ".protorect" / own, kept.tree()
    folder.chmod(0o555)
    sort = ["sort", kept.pictures, "--examples", kept.examples, "--network", kept.weights]
    ((code, said),) = run_commands([[*sort, "--no-cache", "--no-sheet", "--out", kept.out]])
    folder.chmod(0o755)
    assert (code, said.count("\n")) == (2, 1), said
    assert f"{own} is write-protected" in said
    assert kept.tree() == before


def test_undo_says_what_it_may_not_remove(kept):
    journal = kept.out / ".protorect" / "journal"
    journal.chmod(0o555)
    ((code, said),) = run_commands([["undo", kept.out]])
    assert code == 2
    assert said == f"protorect: cannot remove {journal}: Permission denied.\n"
    journal.chmod(0o755)
    assert main(["undo", str(kept.out)]) == 0


def test_an_example_that_may_not_be_read_is_left_out_and_a_class_is_named(kept, tmp_path):
    sort = ["sort", kept.pictures, "--network", kept.weights, "--no-cache", "--move", "--examples"]
    (kept.examples / "red" / "0.png").chmod(0)
    (kept.examples / "blue").chmod(0)
    rest = {"red": kept.examples / "red", "green": kept.examples / "green"}
    others = tmp_path / "others"
    others.mkdir()
    for name, folder in rest.items():
        (others / name).symlink_to(folder)
    (_, refused), (code, said) = run_commands(
        [
            [*sort, kept.examples, "--out", tmp_path / "new"],
            [*sort, others, "--out", tmp_path / "new"],
        ]
    )
    (kept.examples / "blue").chmod(0o755)
    assert refused.startswith(f"protorect: cannot use the class folder {kept.examples / 'blue'}: ")
    assert code == 1, said
    assert f"{others / 'red' / '0.png'}: Permission denied" in said
    assert (tmp_path / "new" / "index.html").exists()
