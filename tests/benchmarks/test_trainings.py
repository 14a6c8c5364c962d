"""The record of a training run."""

import json

from benchmarks.trainings import run_record


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
