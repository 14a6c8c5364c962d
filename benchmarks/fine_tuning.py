"""`python -m benchmarks.fine_tuning NAME FEATURES NETWORK PACKED`: transductive fine-tuning.

Both forms of `tft` beside `cspn` and `bd-cspn-classes` on the same episodes of test classes. Adds
the results under NAME to results/fine-tuning.json and to the tables of docs/fine-tuning.md.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any

from benchmarks.documents import load_results, save_results
from protorect._utils.versions import versions
from protorect.evaluation.evaluate import evaluate
from protorect.evaluation.features import load_features
from protorect.evaluation.result import Result
from protorect.evaluation.sampling import sample_episodes
from protorect.report.table import Table

AUTHORS = "tft:layer=logits,updates=separate"
FORMS = {AUTHORS: "on the logits, as by its authors", "tft": "on the features"}
COMPARED = ("cspn", "bd-cspn-classes")
SHOTS = (1, 5)


def main() -> None:
    """Measure, and write the results and the document."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("name", "features", "network", "packed"):
        parser.add_argument(name)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2, help="processes, of one thread each")
    options = parser.parse_args()
    made_of = options.features, options.network, options.packed
    jobs = [(*made_of, options.episodes, form, shot) for shot, form in product(SHOTS, FORMS)]
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool:
        measured = [line for lines in pool.map(measure, jobs) for line in lines]
    results = load_results("fine-tuning") | {
        options.name: {
            "network": options.network.rsplit("/", 1)[-1],
            "episodes": options.episodes,
            "results": measured,
            "versions": versions(),
        }
    }
    save_results("fine-tuning", results)


def measure(job: tuple[str, str, str, int, str, int]) -> list[dict[str, Any]]:
    """Results of one form and of the compared methods at one shot, with paired differences."""
    features, network, packed, count, form, shot = job
    _, labels = load_features(features)
    episodes = sample_episodes(labels, shot=max(SHOTS), episodes=count)
    specs = [form, *COMPARED]
    shared: dict[str, Any] = {"shot": [shot], "episodes": episodes}
    tuned, *others = evaluate(features, None, specs, **shared, network=network, pictures=packed)
    return [_record(tuned, others), *(_record(one, []) for one in others if form == AUTHORS)]


def _record(result: Result, others: list[Result]) -> dict[str, Any]:
    record = {"method": result.method, "shot": result.shot, "accuracy": result.accuracy}
    differences = {one.method: list(result.minus(one)) for one in others}
    seconds = result.seconds / result.episodes
    return record | {"ci95": result.ci95, "seconds": seconds, "differences": differences}


def tables(results: dict[str, Any]) -> dict[str, Table | list[Table] | str]:
    """The tables of docs/fine-tuning.md."""
    measured = [_table(name, one) for name, one in results.items()]
    return {"fine-tuning": measured or "Not measured yet."}


def _table(name: str, measured: dict[str, Any]) -> Table:
    by_key = {(one["method"], one["shot"]): one for one in measured["results"]}
    rows = []
    for method in (*COMPARED, *FORMS):
        row = [f"`{method}`" + (f", {FORMS[method]}" if method in FORMS else "")]
        for shot in SHOTS:
            one = by_key[method, shot]
            row.append(f"{one['accuracy']:.2f} ± {one['ci95']:.2f}")
            for other in COMPARED:
                mean, interval = one["differences"].get(other, (None, None))
                row.append("" if mean is None else f"{mean:+.2f} ± {interval:.2f}")
        rows.append(row)
    header = ["method"]
    for shot in SHOTS:
        header += [f"{shot}-shot", *(f"minus `{other}`" for other in COMPARED)]
    caption = f"{name}, {measured['network']}: accuracy in % on {measured['episodes']} episodes."
    return Table(caption, header, rows)


if __name__ == "__main__":
    main()
