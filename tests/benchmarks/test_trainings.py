"""The record of a training run."""

import json

from benchmarks.trainings import run_record

from benchmarks import cost


def test_a_run_is_recorded_with_its_log(tmp_path):
    run = {"config": {"epochs": 2}, "data": {}, "versions": {}, "state": 1}
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / "log.jsonl").write_text('{"epoch": 1}\n{"epoch": 2}\n')
    assert run_record(tmp_path) == {
        "config": {"epochs": 2},
        "data": {},
        "versions": {},
        "log": [{"epoch": 1}, {"epoch": 2}],
    }


def test_the_cost_of_a_network_follows_from_its_rate(monkeypatch):
    one = {"backbone": "wrn28-10", "size": 84, "pictures_per_core_second": 2.0}
    monkeypatch.setattr(cost, "load_results", lambda _: {"networks": [one], "bfloat16": True})
    assert cost.cost_table().rows == [["WRN-28-10", "84", "2", "5.3 h", "13.3 days"]]
    assert cost.rate("conv64", 28, 4, 1) > 0
