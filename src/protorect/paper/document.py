"""The page of all experiments, and the documents that are committed to docs/."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from protorect.methods import PICTURE_METHODS
from protorect.paper.experiments import EXPERIMENTS, Experiment
from protorect.paper.feature_sets import SPLITS, FeatureFolder, FeatureSet
from protorect.paper.figures import paper_figures, robust_figures, weights_figures
from protorect.paper.names import WEIGHTINGS, feature_set_name, system_name
from protorect.paper.prose import prose
from protorect.paper.published import SHOTS, published
from protorect.paper.record import ByKey, Record, measured_by_key
from protorect.paper.tables import (
    agreement_counts,
    comparison,
    fine_tuned_table,
    is_measured,
    not_in_paper,
    published_gain,
    published_value,
    ranks,
    weights_table,
)
from protorect.paper.weighting import PRINTED_EPSILON
from protorect.report.page import Element, Listing, Page, Section, render_markdown
from protorect.report.table import Table

Sections = Mapping[str, Section]  # by name of the experiment


def experiment_sections(records: Sequence[Record]) -> dict[str, Section]:
    """One section per experiment, by its name; those that were measured come first."""
    by_name, measured = {one.experiment: one for one in records}, measured_by_key(records)
    return {
        one.name: _section(one, by_name.get(one.name), measured)
        for one in sorted(EXPERIMENTS.values(), key=lambda one: one.name not in by_name)
    }


def paper_page(records: Sequence[Record], sections: Sections) -> Page:
    """Every table and figure: published, measured, or with the commands that are missing."""
    return _page(records, sections.values())


def measured_tables(records: Sequence[Record], sections: Sections) -> list[Table]:
    """The tables of the sections that hold measured numbers."""
    names, measured = {record.experiment for record in records}, measured_by_key(records)
    tables = [one for one in published().tables.values() if not is_measured(one, measured)]
    published_only = [comparison(table, measured) for table in tables]
    elements = [one for name in sections if name in names for one in sections[name].elements]
    return [one for one in elements if isinstance(one, Table) and one not in published_only]


def documents(
    records: Sequence[Record], sections: Sections, trainings: bool = False
) -> dict[str, str]:
    """The page as Markdown documents with their figures: texts by file name.

    The study of eq. (6) is a document of its own. `trainings` adds a link to trainings.md.
    """
    sections, links, pages = dict(sections), [], {}
    weights = sections.pop("weights")
    if any(record.experiment == "weights" for record in records):
        section = replace(weights, title="Two interpretations")
        pages["weights"] = Page(weights.title, prose("weights lead"), [section])
        links.append(replace(weights, elements=[prose("link to weights")]))
    if trainings:
        links.append(Section("Trainings", [prose("link to trainings")]))
    pages["results"] = _page(records, sections.values(), links)
    files: dict[str, str] = {}
    for stem, page in pages.items():
        text, figures = render_markdown(page, f"figures/{stem}")
        files |= {f"{stem}.md": text, **figures}
    return files


def _page(
    records: Sequence[Record], sections: Iterable[Section], links: Sequence[Section] = ()
) -> Page:
    how_to_read = [prose("how to read accuracies"), prose("how to read weights")]
    return Page(
        prose("title"),
        _lead(measured_by_key(records)),
        [
            Section("How to read this", how_to_read),
            *sections,
            Section("Compared systems", [_citations()]),
            *links,
        ],
    )


def _lead(measured: ByKey) -> str:
    """How many numbers the paper prints, and how many of the measured ones agree."""
    total, texts = len(published().distinct()), []
    for system in ("cspn", "bd-cspn", "bd-cspn-classes"):
        counts = agreement_counts(measured, [system])
        if counts:
            each = {name: counts[name] for name in ("within", "above", "below")}
            name = system_name(system)
            texts.append(prose("agreement of a system", system=name, total=counts.total(), **each))
    if not texts:
        return prose("lead, nothing measured", total=total)
    return prose("lead", total=total, agreement="; ".join(texts))


def _section(chosen: Experiment, record: Record | None, measured: ByKey) -> Section:
    elements: list[Element] = [chosen.protocol]
    elements += [comparison(published().tables[number], measured) for number in chosen.shown_tables]
    elements += _results(chosen, record, measured)
    missing = [one for one in chosen.feature_sets if one not in _measured_sets(record)]
    if missing:
        caption = prose("not measured", names=", ".join(one.name for one in missing))
        elements.append(_commands(caption, chosen, missing, SPLITS))
    return Section(chosen.title, elements)


def _results(chosen: Experiment, record: Record | None, measured: ByKey) -> list[Element]:
    """What follows the published tables: further tables, figures and details."""
    elements: list[Element] = []
    if chosen.name == "meta-dataset":
        elements += ranks(measured)
    if record is None:
        return elements
    if chosen.name == "weights":
        elements.append(prose("weights question"))
    elif chosen.name != "figures":
        tables = [published().tables[number] for number in chosen.tables]
        elements += not_in_paper(record.measured, tables)
    for features in chosen.feature_sets:
        data = record.figure_data.get(features.name)
        if chosen.name == "robust":
            elements += robust_figures(record.measured, features)
        elif chosen.name == "figures" and data:
            elements += paper_figures(data, features)
        elif chosen.name == "weights" and data:
            elements += [
                weights_table(data, features),
                _weights_answer(data, features),
                weights_figures(data, features),
            ]
    return [*elements, _details(record), *_fine_tuned(chosen, record)]


def _weights_answer(study: Mapping[str, Any], features: FeatureSet) -> str:
    """Which interpretation of eq. (6) is nearer to the published gains, and why."""
    at, one_shot = study["epsilon"].index(PRINTED_EPSILON), study["shots"]["1"]
    return prose(
        "weights answer",
        where=feature_set_name(features),
        shots=" ".join(_gains_text(study["shots"][str(k)], at, features, k) for k in SHOTS),
        cosine=one_shot["cosine"],
        **{name: 100 * one_shot[name]["support_share"][at] for name in WEIGHTINGS},
    )


def _gains_text(curves: Mapping[str, Any], at: int, features: FeatureSet, shot: int) -> str:
    """The gain with both weightings at the paper's epsilon, and which is nearer to the paper's."""
    printed = published_gain(features, shot)
    gains = {name: curves[name]["gain"][at] for name in WEIGHTINGS}
    interval = math.hypot(*(curves[name]["gain_ci95"][at] for name in WEIGHTINGS))
    nearest = min(gains, key=lambda name: abs(gains[name] - printed))
    differ = abs(gains["samples"] - gains["classes"]) > interval
    texts = [
        prose(
            "weights gain",
            weighting=WEIGHTINGS[name],
            gain=gain,
            accuracy=curves[name]["accuracy"][at],
        )
        for name, gain in gains.items()
    ]
    return prose(
        "weights at one shot",
        shot=shot,
        epsilon=PRINTED_EPSILON,
        gain=printed,
        accuracy=published_value(features, "bd-cspn", shot),
        gains=" and ".join(texts),
        nearer=f"{WEIGHTINGS[nearest]} are nearer" if differ else "no clear difference",
    )


def _fine_tuned(chosen: Experiment, record: Record) -> list[Element]:
    """Fine-tuned networks compared with CSPN on the same episodes, and what is missing."""
    elements: list[Element] = []
    for method in chosen.picture_methods:
        differences, missing = {}, []
        for features in _measured_sets(record):
            data = record.figure_data.get(features.name, {})
            if method in data:
                differences[features] = data[method]
            else:
                missing.append(features)
        if differences:
            elements.append(fine_tuned_table(method, differences))
        if missing:
            names = ", ".join(one.name for one in missing)
            caption = prose("fine-tuning not measured", system=system_name(method), names=names)
            elements.append(_commands(caption, chosen, missing, ()))
    return elements


def _measured_sets(record: Record | None) -> list[FeatureSet]:
    """The feature sets of a record, each once."""
    files = record.features if record else ()
    return list(dict.fromkeys(FeatureSet(one["data"], one["backbone"]) for one in files))


def _commands(
    caption: str, chosen: Experiment, missing: Sequence[FeatureSet], splits: Sequence[str]
) -> Listing:
    """The commands that make these features and then run the experiment."""
    make = FeatureFolder().commands([(features, splits) for features in missing])
    return Listing(caption, [*make, f"protorect paper {chosen.name} --results results/paper"])


def _details(record: Record) -> dict[str, str]:
    """What is needed to get the same numbers again."""
    files = ", ".join(f"`{one['file']}` ({one['sha256'][:12]})" for one in record.features)
    fine_tuned = [one.episodes for one in record.measured if one.method in PICTURE_METHODS]
    command = f"protorect paper {record.experiment} --seed {record.seed}"
    command += f" --fine-tuned-episodes {max(fine_tuned)}" if fine_tuned else ""
    return {
        "command": f"`{command}`",
        "features": f"{files}; in parentheses the SHA-256 of the values",
        "weights": ", ".join(dict.fromkeys(one["weights"][:12] for one in record.features)),
        "duration": f"{record.seconds:.0f} s",
        "versions": ", ".join(f"{name} {number}" for name, number in record.versions.items()),
    }


def _citations() -> dict[str, str]:
    """The citation of every compared system."""
    systems = {"Meta-Dataset": "triantafillou2020meta"}
    for table in published().tables.values():
        systems |= {system_name(row.key.system): row.cite for row in table.rows if row.cite}
    return {name: published().citations[cite] for name, cite in sorted(systems.items())}
