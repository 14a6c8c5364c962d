"""Some hundreds of damaged files of every kind, the same ones each time, and those once found."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

ROOT = Path(__file__).parents[2]
CASES = 250


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_damaged_files_are_read_or_refused():
    """In a process of its own, which watches everything that Python opens and runs."""
    done = subprocess.run(
        [sys.executable, "-m", "campaign.fuzz", "--cases", str(CASES), "--seed", "tests"],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    measured = json.loads(done.stdout.splitlines()[-1])
    assert measured["cases"] >= CASES
    assert len(measured["kinds"]) == 7
    for counts in measured["kinds"].values():
        assert set(counts) <= {"0", "1", "2", "130"}
    assert sum(counts.get("2", 0) for counts in measured["kinds"].values()) > CASES / 4
    assert sum(counts.get("0", 0) for counts in measured["kinds"].values()) > CASES / 10


def test_a_mutation_is_the_same_for_the_same_seed_and_mostly_changes_something():
    from campaign.fuzz_mutations import mutated_bytes, mutated_json, mutated_toml

    content = {mutated_json: b'{"a": [1, "b"]}', mutated_toml: b"a = 1", mutated_bytes: bytes(99)}
    for mutation, data in content.items():
        some = [mutation(data, Random(seed)) for seed in range(50)]
        assert some == [mutation(data, Random(seed)) for seed in range(50)]
        assert sum(one != data for one in some) > 40
        assert len(set(some)) > 25
