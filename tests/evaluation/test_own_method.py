"""Functions of the user as methods, in Python and on the command line."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.random_tasks import random_tasks
from protorect import DataError, OptionError, evaluate, sample_episodes
from protorect.cli import main
from protorect.evaluation.own_method import resolve_methods

FILE = """
import torch
from helper import centers

class Box:
    pass

def nearest(support, labels, query, ways):
    assert support.dtype == query.dtype == torch.float32 and labels.dtype == torch.int64
    assert support.shape[:2] == labels.shape
    unit = lambda x: torch.nn.functional.normalize(x, dim=-1)
    return unit(query) @ unit(centers(unit(support), labels, ways)).mT

def transposed(support, labels, query, ways):
    return nearest(support, labels, query, ways).mT

def nan(support, labels, query, ways):
    return nearest(support, labels, query, ways) * float("nan")

def broken(support, labels, query, ways):
    return support @ query

def one_argument(support):
    return support

number = 7
"""
HELPER = """
import torch

def centers(support, labels, ways):
    members = torch.nn.functional.one_hot(labels, ways).float()
    return members.mT @ support / members.sum(dim=1).unsqueeze(-1)
"""


@pytest.fixture
def here(tmp_path, monkeypatch, feature_set):
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    Path("mine.py").write_text(FILE)
    Path("helper.py").write_text(HELPER)
    Path("failing.py").write_text("import torch\n\nraise RuntimeError('no\\n  data')\n")
    Path("syntax.py").write_text("def scores(:\n")
    np.savez("f.npz", features=feature_set[0], labels=feature_set[1])
    return tmp_path


def nearest_mean(support, labels, query, ways):
    members = torch.nn.functional.one_hot(labels, ways).float()
    return -torch.cdist(query, members.mT @ support / members.sum(dim=1).unsqueeze(-1))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_function_gets_raw_features_and_is_evaluated_beside_the_methods(feature_set, dtype):
    features, labels = feature_set[0].astype(dtype), feature_set[1]
    own, known = evaluate(features, labels, [nearest_mean, "protonet"], shot=5, episodes=50)
    assert (own.method, known.method) == ("nearest_mean", "protonet")
    assert own.accuracy == pytest.approx(known.accuracy, abs=0.05)
    assert evaluate(features, labels, nearest_mean, shot=1, episodes=5)[0].method == own.method


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_function_is_fitted_like_any_method(dtype):
    support, labels, query = random_tasks((2, 1, 3), 30, dtype=dtype)
    (own,) = resolve_methods(nearest_mean)
    fitted = own.fit(support, labels, query)
    assert torch.equal(fitted.scores(query), own(support, labels, query))
    assert not own.has_rule
    # New samples are compared with the means of the support and of the queries of each class.
    unit, of_query = torch.nn.functional.normalize, fitted.scores(query).argmax(dim=-1)
    for task in range(3):
        rows = unit(torch.cat([support[task], query[task]]).double(), dim=-1)
        classes = torch.cat([labels, of_query[task]])
        means = torch.stack([rows[classes == way].mean(dim=0) for way in range(3)])
        expected = unit(query[task].double(), dim=-1) @ unit(means, dim=-1).T
        new = fitted.scores(query.clone())[task].double()
        torch.testing.assert_close(new, expected, atol=1e-5, rtol=0)


def test_a_function_may_change_its_arguments_and_take_gradients(feature_set):
    def careless(support, labels, query, ways):
        weights = torch.zeros(ways, support.shape[-1], requires_grad=True)
        loss = torch.nn.functional.cross_entropy((support @ weights.T).mT, labels)
        torch.autograd.backward(loss)
        query *= -1
        support.zero_()
        labels.zero_()
        return query @ weights.grad.T  # gradients point away from the classes

    episodes = sample_episodes(feature_set[1], episodes=20)
    methods = ["protonet", careless, "cspn"]
    before, own, after = evaluate(*feature_set, methods, episodes=episodes)
    assert own.accuracy > 30
    for one, name in ((before, "protonet"), (after, "cspn")):
        (alone,) = evaluate(*feature_set, name, episodes=episodes)
        assert (one.predictions == alone.predictions).all()


def test_scores_may_be_integers_or_infinite(feature_set):
    def votes(support, labels, query, ways):
        nearest = torch.cdist(query, support).argmin(dim=-1)
        return torch.nn.functional.one_hot(labels.gather(1, nearest), ways)

    def logarithms(support, labels, query, ways):
        return votes(support, labels, query, ways).float().log()

    counted, logs = evaluate(*feature_set, [votes, logarithms], shot=1, episodes=10)
    assert counted.accuracy > 30
    assert (counted.predictions == logs.predictions).all()


def test_two_functions_of_one_name_are_refused(feature_set):
    first, second = (lambda *a, n=n: a[2][..., : a[3]] * n for n in (1, 2))
    with pytest.raises(OptionError, match="two different methods are called <lambda>; rename one"):
        evaluate(*feature_set, [first, second], episodes=5)
    assert len(evaluate(*feature_set, [first, first], shot=1, episodes=5)) == 1


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "must return a tensor of real scores, got NoneType"),
        (np.zeros((5, 75, 5)), "must return a tensor of real scores, got ndarray"),
        (torch.zeros(5, 75, 5, dtype=torch.complex64), "real scores, got torch.complex64"),
        (torch.zeros(75, 5), r"here \(5, 75, 5\); got shape \(75, 5\)"),
    ],
)
def test_other_results_are_refused(feature_set, returned, message):
    with pytest.raises(DataError, match=message):
        evaluate(*feature_set, lambda *_: returned, shot=1, episodes=5)


@pytest.mark.parametrize("name", ["mine.py:nearest", "mine:nearest"])
def test_the_command_runs_a_function_of_a_file_or_a_module(here, name, capsys):
    line = f"evaluate f.npz --method cspn --method {name} --episodes 30 --json o.json"
    assert main(line.split()) == 0
    results = json.loads(Path("o.json").read_text())["results"]
    assert [one["method"] for one in results] == ["cspn", name] * 2
    assert results[0]["accuracy"] == pytest.approx(results[1]["accuracy"], abs=0.1)
    assert f"{name} " in capsys.readouterr().out


def test_compare_runs_it_too(here, capsys):
    line = "compare f.npz --method cspn --method mine.py:nearest --episodes 5 --shot 1"
    assert main(line.split()) == 0
    assert "mine.py:nearest" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.py:scores", "there is no file missing.py."),
        ("mine.py", "mine.py is a file; name the function in it, as in mine.py:scores."),
        ("mine.py:neerest", "unknown function of mine.py 'neerest'. Did you mean 'nearest'?"),
        ("mine.py:number", "unknown function of mine.py 'number'"),
        ("nowhere.module:scores", "nowhere.module cannot be imported: ModuleNotFoundError: No"),
        ("failing.py:scores", "failing.py cannot be imported at line 3: RuntimeError: no data."),
        ("syntax.py:scores", "syntax.py cannot be imported: SyntaxError: invalid syntax"),
        ("mine.py:transposed", "must return scores (tasks, n_query, ways), here (30, 75, 5); got"),
        ("mine.py:nan", "mine.py:nan returned 11250 scores of NaN."),
        ("mine.py:broken", "mine.py:broken failed at line 21: RuntimeError: "),
        ("mine.py:one_argument", "mine.py:one_argument failed: TypeError: one_argument() takes 1"),
        ("cspn:nearest", "'nearest' is not an option; write name=value"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(here, capsys, name, message):
    line = f"evaluate f.npz --method {name} --episodes 30 --shot 1 --json o.json"
    assert main(line.split()) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert not Path("o.json").exists()


LAZY = """
def __getattr__(name):
    if name == "late":
        from helper import centers
        return lambda support, labels, query, ways: query @ centers(support, labels, ways).mT
    if name == "failing":
        import nowhere
    raise AttributeError(name)

def _private():
    pass
"""


def test_a_function_that_a_package_imports_only_when_asked(here, monkeypatch):
    (here / "lazy_package").mkdir()
    (here / "lazy_package" / "__init__.py").write_text(LAZY)
    monkeypatch.syspath_prepend(here)
    (own,) = evaluate("f.npz", None, "lazy_package:late", shot=1, episodes=5)
    assert own.method == "lazy_package:late"
    with pytest.raises(DataError, match="lazy_package cannot be imported.*No module named 'now"):
        resolve_methods("lazy_package:failing")
    monkeypatch.delitem(sys.modules, "lazy_package")


def test_private_names_are_not_suggested(here):
    (here / "private.py").write_text("def scores(): pass\n\ndef _score(): pass\n")
    with pytest.raises(OptionError, match=r"Did you mean 'scores'\? Known: scores\.$"):
        resolve_methods("private.py:score")
