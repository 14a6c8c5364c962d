"""The page of all experiments, and the documents that are committed to docs/."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from protorect.core.statistics import Estimate
from protorect.methods import PICTURE_METHODS
from protorect.paper.experiments import EXPERIMENTS, Experiment
from protorect.paper.feature_sets import SPLITS, FeatureFolder, FeatureSet
from protorect.paper.figures import paper_figures
from protorect.paper.published import SHOTS, load_toml, published_tables, published_values
from protorect.paper.record import ByKey, Record, measured_by_key
from protorect.paper.robust import robust_figures
from protorect.paper.tables import agreement_counts, comparison, is_measured, not_in_paper, ranks
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
    cited = {"Meta-Dataset": "triantafillou2020meta"}
    for table in published_tables().values():
        cited |= {system_name(row.key.system): row.cite for row in table.rows if row.cite}
    citations = load_toml("published.toml")["citations"]
    systems = {system: citations[cite] for system, cite in sorted(cited.items())}
    compared = Section("Compared systems", [systems])
    lead = _lead(measured_by_key(records))
    return Page(prose("title"), lead, [first, *sections, compared, *links])


def _lead(measured: ByKey) -> str:
    """How many numbers the paper prints, and how many of the measured ones agree."""
    total, texts = len(published_values()), []
    for system in ("cspn", "bd-cspn", "bd-cspn-classes"):
        counts = agreement_counts(measured, system)
        if counts:
            values = {"system": system_name(system), "counts": counts, "total": counts.total()}
            texts.append(prose("agreement of a system", **values))
    if not texts:
        return prose("lead, nothing measured", total=total)
    return prose("lead", total=total, agreement="; ".join(texts))


def _section(chosen: Experiment, record: Record | None, measured: ByKey) -> Section:
    """Protocol, published tables, what was measured, and the commands for what was not."""
    tables = [published_tables()[number] for number in [*chosen.tables, *chosen.more_tables]]
    elements: list[Element] = [chosen.protocol, *(comparison(one, measured) for one in tables)]
    if chosen.name == "meta-dataset":
        elements += ranks(published_tables()[14], measured)
    if record:
        elements += _results(chosen, record)
    missing = [one for one in chosen.feature_sets if one not in _measured_sets(record)]
    if missing:
        elements.append(_commands("not measured", chosen, missing, SPLITS))
    return Section(chosen.title, elements)


def _results(chosen: Experiment, record: Record) -> list[Element]:
    """What follows the published tables: further tables, figures and details."""
    elements: list[Element] = []
    if chosen.name == "weights":
        elements.append(prose("weights question"))
    elif chosen.name != "figures":
        tables = [published_tables()[number] for number in chosen.tables]
        elements += not_in_paper(record.measured, tables)
    for features in _measured_sets(record):
        if chosen.name == "robust":
            elements += robust_figures(record.measured, features)
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
        for features in _measured_sets(record):
            data = record.figure_data.get(features.name, {}).get(method)
            if data is None:
                missing.append(features)
                continue
            gains = [difference_text(Estimate(**data[str(shot)])) for shot in SHOTS]
            rows.append([feature_set_name(features), str(data["episodes"]), *gains])
        if rows:
            elements.append(Table(prose("fine-tuned caption", system=system), header, rows))
        if missing:
            heading = "fine-tuning not measured"
            elements.append(_commands(heading, chosen, missing, (), system=system))
    return elements


def _measured_sets(record: Record | None) -> list[FeatureSet]:
    """The feature sets of a record, each once."""
    files = record.features if record else ()
    test = (one for one in files if one.get("split") != "val")
    return list(
        dict.fromkeys(FeatureSet(one["data"], one.get("network", one["backbone"])) for one in test)
    )


def _commands(
    heading: str,
    chosen: Experiment,
    missing: Sequence[FeatureSet],
    splits: Sequence[str],
    **values: str,
) -> Listing:
    """The commands that make these features and then run the experiment, below a caption."""
    caption = prose(heading, names=", ".join(one.name for one in missing), **values)
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
