"""The page of all experiments, and the documents that are committed to docs/."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from protorect.core.statistics import Estimate
from protorect.methods import PICTURE_METHODS
from protorect.paper.experiments import EXPERIMENTS, Experiment
from protorect.paper.feature_sets import DATASETS, SPLITS, FeatureFolder, FeatureSet
from protorect.paper.figures import paper_figures
from protorect.paper.own_tables import further_runs, not_in_paper, same_network, side_by_side
from protorect.paper.published import SHOTS, load_toml, published_tables, published_values
from protorect.paper.record import ByKey, Record, measured_by_key
from protorect.paper.robust import robust_figures
from protorect.paper.tables import agreement_counts, comparison, is_measured, ranks
from protorect.paper.texts import feature_set_name, prose, system_name
from protorect.paper.weighting import weighting_elements
from protorect.report.page import Element, Listing, Page, Section, render_markdown
from protorect.report.results import difference_text
from protorect.report.table import Table

Sections = Mapping[str, Section]  # by name of the experiment


def experiment_sections(records: Sequence[Record]) -> dict[str, Section]:
    """One section per experiment, by its name; those that were measured come first."""
    by_name, measured = {one.experiment: one for one in records}, measured_by_key(records)
    return {
        one.name: _section(one, by_name.get(one.name), measured)
        for one in sorted(EXPERIMENTS.values(), key=lambda one: one.name not in by_name)
    }


def measured_tables(records: Sequence[Record], sections: Sections) -> list[Table]:
    """The tables of the sections that hold measured numbers."""
    names, measured = {record.experiment for record in records}, measured_by_key(records)
    tables = [one for one in published_tables().values() if not is_measured(one, measured)]
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
    pages["results"] = paper_page(records, sections.values(), links)
    files: dict[str, str] = {}
    for stem, page in pages.items():
        text, figures = render_markdown(page, f"figures/{stem}")
        files |= {f"{stem}.md": text, **figures}
    return files


def paper_page(
    records: Sequence[Record], sections: Iterable[Section], links: Sequence[Section] = ()
) -> Page:
    """Every table and figure: published, measured, or with the commands that are missing."""
    how_to_read = [prose("how to read accuracies"), prose("how to read weights")]
    first = Section("How to read this", how_to_read)
    gaps = Section("What the paper leaves open", [load_toml("experiments.toml")["gaps"]])
    cited = {"Meta-Dataset": "triantafillou2020meta"}
    for table in published_tables().values():
        cited |= {system_name(row.key.system): row.cite for row in table.rows if row.cite}
    citations = load_toml("published.toml")["citations"]
    systems = {system: citations[cite] for system, cite in sorted(cited.items())}
    compared = Section("Compared systems", [systems])
    lead = _lead(measured_by_key(records))
    missing = Section("Not measured", _not_measured(records))
    return Page(prose("title"), lead, [first, gaps, *sections, missing, compared, *links])


def _lead(measured: ByKey) -> str:
    """How many numbers the paper prints, and how many of the measured ones agree."""
    total, texts = len(published_values()), []
    for system in ("cspn", "bd-cspn:z=8", "bd-cspn-classes:z=8"):
        counts = agreement_counts(measured, system)
        if counts:
            values = {"system": system_name(system), "counts": counts, "total": counts.total()}
            texts.append(prose("agreement of a system", **values))
    if not texts:
        return prose("lead, nothing measured", total=total)
    return prose("lead", total=total, agreement="; ".join(texts))


def _section(chosen: Experiment, record: Record | None, measured: ByKey) -> Section:
    """Protocol, published tables, what was measured, and what was not."""
    tables = [published_tables()[number] for number in [*chosen.tables, *chosen.more_tables]]
    elements: list[Element] = [chosen.protocol, *(comparison(one, measured) for one in tables)]
    if chosen.same_network:
        elements += same_network(chosen.same_network, measured)
    if chosen.versions:
        elements += side_by_side(chosen.versions, measured)
    if chosen.name == "meta-dataset":
        elements += ranks(published_tables()[14], measured)
    if chosen.remark and record:
        elements.append(prose(chosen.remark))
    if record:
        elements += _results(chosen, record, measured)
    missing = [one.name for one in chosen.feature_sets if one not in _measured_sets(chosen, record)]
    if missing:
        elements.append(prose("not measured", names=", ".join(missing)))
    return Section(chosen.title, elements)


def _results(chosen: Experiment, record: Record, measured: ByKey) -> list[Element]:
    """What follows the published tables: further tables, figures and details."""
    elements: list[Element] = []
    sets = _measured_sets(chosen, record)
    order = {features.name: number for number, features in enumerate(sets)}
    known = [one for one in record.measured if one.feature_set in order]
    numbers = sorted(known, key=lambda one: order[one.feature_set])
    if chosen.name == "weights":
        elements.append(prose("weights question"))
    elif chosen.name != "figures":
        tables = [published_tables()[number] for number in chosen.tables]
        shown = [one for one in numbers if one.dataset not in chosen.versions[1:]]
        elements += [*not_in_paper(shown, tables, measured), *further_runs(numbers)]
    for features in sets:
        if chosen.name == "robust":
            elements += robust_figures(numbers, features)
        elif chosen.name == "figures":
            elements += paper_figures(record.figure_data[features.name], features)
        elif chosen.name == "weights":
            elements += weighting_elements(record.figure_data[features.name], features)
    return [*elements, _details(record), *_fine_tuned(chosen, record)]


def _fine_tuned(chosen: Experiment, record: Record) -> list[Element]:
    """Fine-tuned networks compared with CSPN on the same episodes, and what is missing."""
    elements: list[Element] = []
    header = ["data set", "episodes", *(f"{shot}-shot minus CSPN" for shot in SHOTS)]
    for method in chosen.picture_methods:
        system, rows, missing = system_name(method), [], []
        for features in _measured_sets(chosen, record):
            data = record.figure_data.get(features.name, {}).get(method)
            if data is None:
                missing.append(features)
                continue
            gains = [difference_text(Estimate(**data[str(shot)])) for shot in SHOTS]
            rows.append([feature_set_name(features), str(data["episodes"]), *gains])
        if rows:
            elements.append(Table(prose("fine-tuned caption", system=system), header, rows))
        if missing:
            names = ", ".join(one.name for one in missing)
            caption = prose("fine-tuning not measured", system=system, names=names)
            elements.append(_commands(caption, [chosen.name], missing, ()))
    return elements


def _measured_sets(chosen: Experiment, record: Record | None) -> list[FeatureSet]:
    """The feature sets of a record: those of the experiment in their order, then other networks."""
    names = record.feature_sets if record else []
    listed, measured = chosen.feature_sets, record.measured if record else ()
    datasets = {one.dataset for one in listed}
    found = (FeatureSet(one.dataset, one.backbone, one.run) for one in measured)
    others = (one for one in found if one.dataset in datasets and one not in listed)
    return [one for one in listed if one.name in names] + list(dict.fromkeys(others))


def _not_measured(records: Sequence[Record]) -> list[Element]:
    """The commands for every feature set that is missing, those that are out of reach last."""
    by_name = {one.experiment: one for one in records}
    missing: dict[FeatureSet, list[str]] = {}
    for chosen in EXPERIMENTS.values():
        for one in chosen.feature_sets:
            if one not in _measured_sets(chosen, by_name.get(chosen.name)):
                missing.setdefault(one, []).append(chosen.name)
    elements: list[Element] = []
    for heading in ("within reach", "out of reach"):
        sets = [one for one in missing if _out_of_reach(one) == (heading == "out of reach")]
        if sets:
            names = list(dict.fromkeys(name for one in sets for name in missing[one]))
            elements.append(_commands(prose(heading), names, sets, SPLITS))
    return elements


def _out_of_reach(features: FeatureSet) -> bool:
    """Whether its pictures, or the time to train its network, are not to be had here."""
    return "missing" in DATASETS[features.dataset] or features.backbone == "wrn28-10"


def _commands(
    caption: str, names: Sequence[str], missing: Sequence[FeatureSet], splits: Sequence[str]
) -> Listing:
    """The commands that make these features and then run the experiments, below a caption."""
    make = FeatureFolder().commands([(features, splits) for features in missing])
    return Listing(caption, [*make, f"protorect paper {' '.join(names)} --results results/paper"])


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
