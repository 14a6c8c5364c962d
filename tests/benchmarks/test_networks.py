"""What `protorect networks` shows is what was measured, and the default is worth its time."""

from benchmarks.documents import DOCS, load_results
from benchmarks.networks_document import measured_text, plot
from benchmarks.speed_plot import Point, frontier

from protorect.embedding.networks import MEASURED
from protorect.embedding.sources import DEFAULT_SOURCE


def cell(results, spec, shot, name="groceries"):
    return results["accuracy"][name][spec][results["method"]][shot]


def test_the_package_has_the_measured_accuracies():
    assert MEASURED.read_text() == measured_text(load_results("networks"))


def test_the_default_is_better_than_lite0_and_none_is_faster_and_better_with_one_example():
    results = load_results("networks")
    default = cell(results, f"{DEFAULT_SOURCE} int8", "1")["accuracy"]
    assert default >= cell(results, "efficientnet-lite0 int8", "1")["accuracy"] + 3
    for name in ("groceries", "birds"):
        points = [
            Point(spec, rate, cell(results, spec, "1", name)["accuracy"], 0.0)
            for spec, rate in results["speed"].items()
            if "torch" not in spec
        ]
        assert f"{DEFAULT_SOURCE} int8" in [one.label for one in frontier(points)]


def test_int8_loses_at_most_half_a_point():
    results = load_results("networks")
    losses = [
        one["loss"]
        for of_set in results["accuracy"].values()
        for methods in of_set.values()
        for one in methods[results["method"]].values()
        if "loss" in one
    ]
    assert len(losses) == 4 * 4 * 2
    assert max(losses) <= 0.5


def test_the_frontier():
    a, b, c = Point("a", 3.0, 1.0, 0.0), Point("b", 2.0, 0.5, 0.0), Point("c", 1.0, 2.0, 0.0)
    assert frontier([b, c, a]) == [a, c]


def test_the_figure_is_made_from_the_results():
    assert (DOCS / "figures" / "networks.svg").read_text() == plot(load_results("networks"))
