"""`protorect datasets`: where to get each data set, its license and its folders."""

from protorect.cli import main
from protorect.datasets.catalogue import DATASETS


def test_every_data_set_is_listed(capsys):
    assert main(["datasets"]) == 0
    paragraphs = capsys.readouterr().out.split("\n\n")
    assert [text.splitlines()[0] for text in paragraphs] == list(DATASETS)
    for text, known in zip(paragraphs, DATASETS.values(), strict=True):
        assert known.expects in text
        assert known.source in text
        assert known.license in text
    omniglot = paragraphs[list(DATASETS).index("omniglot")]
    assert "4,112 train, 688 val, 1,692 test (1,623 characters in 4 rotations)" in omniglot
    assert "100 train, 50 val, 50 test" in paragraphs[list(DATASETS).index("cub")]
