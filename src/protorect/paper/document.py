"""The page of all experiments, and the documents kept beside the code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from protorect.methods import PICTURE_METHODS
from protorect.paper.compare import comparison, further, signed, verdicts
from protorect.paper.experiments import EXPERIMENTS, Experiment
from protorect.paper.figures import drawn_figures, robust_figures
from protorect.paper.names import BACKBONES, DATASETS, system_name
from protorect.paper.published import SHOTS, published
from protorect.paper.ranks import ranks
from protorect.paper.record import Record, measured_by_key
from protorect.paper.sources import SPLITS, Source, commands
from protorect.paper.study import weights_blocks
from protorect.report.page import Element, Listing, Page, Section, Terms, render_markdown
from protorect.report.table import Table

TITLE = "Prototype Rectification for Few-Shot Learning, measured again"
STUDY_LEAD = (
    "The weights of BD-CSPN can be read in two ways. This page, made by `protorect paper` from "
    "measured results, says which one gives the gains that the paper publishes, and why."
)


def paper_page(records: Sequence[Record]) -> Page:
    """Every table and figure: published, measured, or marked with what is missing."""
    by_name = {record.experiment: record for record in records}

    def unmeasured(one: Experiment) -> bool:
        return one.name not in by_name

    return Page(
        TITLE,
        _lead(records),
        [
            Section("How to read this", _reading()),
            *(_section(one, by_name) for one in sorted(EXPERIMENTS.values(), key=unmeasured)),
            Section("Compared systems", [Terms(_cited())]),
        ],
    )


def measured_tables(page: Page, records: Sequence[Record]) -> list[Table]:
    """The tables of the experiments that were measured, without what is only published."""
    titles = {EXPERIMENTS[record.experiment].title for record in records}
    blocks = [block for one in page.sections if one.title in titles for block in one.elements]
    tables = [block for block in blocks if isinstance(block, Table)]
    return [one for one in tables if not all("published" in name for name in one.header[1:])]


def documents(page: Page, records: Sequence[Record], trainings: bool = False) -> dict[str, str]:
    """The page as Markdown documents with their figures: file names and what is in them.

    The study of the weights is a document of its own. `trainings` says that trainings.md, on the
    networks behind the results, lies beside them.
    """
    title = EXPERIMENTS["weights"].title
    kept = [section for section in page.sections if section.title != title]
    pages = {"results": replace(page, sections=kept)}
    if any(record.experiment == "weights" for record in records):
        (study,) = (section for section in page.sections if section.title == title)
        pages["weights"] = Page(title, STUDY_LEAD, [replace(study, title="Two readings")])
        linked = Section(title, ["A page of its own: [weights.md](weights.md)."])
        pages["results"] = replace(page, sections=[*kept, linked])
    if trainings:
        told = "How the networks were trained, and what was tried: [trainings.md](trainings.md)."
        results = pages["results"]
        pages["results"] = replace(
            results, sections=[*results.sections, Section("Trainings", [told])]
        )
    files: dict[str, str] = {}
    for stem, one in pages.items():
        text, figures = render_markdown(one, f"figures/{stem}")
        files |= {f"{stem}.md": text, **figures}
    return files


def _lead(records: Sequence[Record]) -> str:
    found = measured_by_key(records)
    told = []
    for system in ("cspn", "bd-cspn", "bd-cspn-classes"):
        counts = verdicts(found, [system])
        if counts:
            told.append(
                f"{system_name(system)}: {counts['within']} of {counts.total()} within the "
                f"interval, {counts['above']} above, {counts['below']} below"
            )
    total = len({(key, shot) for key, shot, _ in published().values()})
    if not told:
        return f"The paper prints {total} different numbers; none of them was measured yet."
    return (
        f"The paper prints {total} different numbers, those of compared systems included. Of "
        f"those measured again here, {'; '.join(told)}."
    )


def _reading() -> list[Element]:
    return [
        "Accuracies are in percent with 95 % intervals over the episodes; Z behind a number is the "
        "one chosen on the validation classes. A difference is measured minus published. It is "
        "`within` if it is no larger than the interval, the published one included where there is "
        "one, else `above` or `below`; where the paper prints no interval its own uncertainty is "
        "not counted.",
        "Eq. (6) can be read in two ways. BD-CSPN has its weights as printed; in BD-CSPN (classes) "
        "they are each sample's softmax over the classes, normalised within the class, and called "
        "class weights. Both are measured.",
    ]


def _section(chosen: Experiment, records: Mapping[str, Record]) -> Section:
    record = records.get(chosen.name)
    found = measured_by_key(records.values())
    blocks: list[Element] = [chosen.protocol]
    tables = [published().tables[number] for number in (*chosen.tables, *chosen.beside)]
    blocks += [comparison(table, found) for table in tables]
    if chosen.name == "meta-dataset":
        blocks += ranks(found)
    if record is not None:
        blocks += _of_record(chosen, record)
        blocks += _fine_tuned(chosen, record)
    missing = [source for source in chosen.sources if not _has(record, source)]
    if missing:
        blocks.append(_missing(chosen, missing))
    return Section(chosen.title, blocks)


def _of_record(chosen: Experiment, record: Record) -> list[Element]:
    blocks: list[Element] = []
    if chosen.name == "figures":
        blocks += drawn_figures(record, chosen.sources)
    elif chosen.name == "weights":
        blocks += weights_blocks(record, chosen.sources)
    else:
        tables = [published().tables[number] for number in chosen.tables]
        table = further(record.measured, tables, "Measured here, not in the paper")
        blocks += [table] if table else []
    if chosen.name == "robust":
        blocks += robust_figures(record.measured, chosen.sources)
    return [*blocks, _details(record)]


def _fine_tuned(chosen: Experiment, record: Record) -> list[Element]:
    """Fine-tuned networks against CSPN on the same episodes, and what is missing."""
    blocks: list[Element] = []
    for name in chosen.on_pictures:
        found = [one for one in chosen.sources if name in record.drawings.get(one.name, {})]
        if found:
            blocks.append(_paired(name, {one: record.drawings[one.name][name] for one in found}))
        missing = [one for one in chosen.sources if _has(record, one) and one not in found]
        if missing:
            named = ", ".join(source.name for source in missing)
            blocks.append(
                Listing(
                    f"{system_name(name)} needs the run and the pictures as well. Not measured: "
                    f"{named}. What to run:",
                    _lines(chosen, missing, splits=()),
                )
            )
    return blocks


def _paired(name: str, differences: Mapping[Source, Mapping[str, Any]]) -> Table:
    rows = []
    for source, held in differences.items():
        row = [f"{DATASETS[source.dataset]}, {BACKBONES[source.backbone]}", str(held["episodes"])]
        for shot in SHOTS:
            mean, ci95 = held[str(shot)]["mean"], held[str(shot)]["ci95"]
            row.append(f"{signed(mean)} ± {ci95:.2f}")
        rows.append(row)
    header = ["data set", "episodes", *(f"{shot}-shot minus CSPN" for shot in SHOTS)]
    return Table(f"{system_name(name)} minus CSPN on the same episodes.", header, rows)


def _has(record: Record | None, source: Source) -> bool:
    made = {(one["data"], one["backbone"]) for one in (record.features if record else ())}
    return (source.dataset, source.backbone) in made


def _missing(chosen: Experiment, sources: Sequence[Source]) -> Listing:
    named = ", ".join(source.name for source in sources)
    return Listing(
        f"Not measured: {named}. What to run (`protorect datasets` says where to get the data):",
        _lines(chosen, sources),
    )


def _lines(
    chosen: Experiment, sources: Sequence[Source], splits: Sequence[str] = SPLITS
) -> list[str]:
    """The commands that end with the experiment on these sources."""
    lines = [line for source in sources for line in commands(source, splits=splits)]
    lines.append(f"protorect paper {chosen.name} --results results/paper")
    return sorted(dict.fromkeys(lines), key=_step)


def _step(line: str) -> int:
    return ("prepare", "train", "extract", "paper").index(line.split()[1])


def _details(record: Record) -> Terms:
    """What is needed to get the same numbers again."""
    files = ", ".join(f"`{one['file']}` ({one['sha256'][:12]})" for one in record.features)
    weights = dict.fromkeys(f"{one['weights'][:12]}" for one in record.features)
    tuned = [one.episodes for one in record.measured if one.method in PICTURE_METHODS]
    command = f"protorect paper {record.experiment} --seed {record.seed}"
    command += f" --fine-tuned-episodes {max(tuned)}" if tuned else ""
    return Terms(
        {
            "command": f"`{command}`",
            "features": f"{files}; in brackets the SHA-256 of the values",
            "weights": ", ".join(weights),
            "took": f"{record.seconds:.0f} s",
            "versions": ", ".join(f"{name} {number}" for name, number in record.versions.items()),
        }
    )


def _cited() -> dict[str, str]:
    systems: dict[str, str] = {"Meta-Dataset": "triantafillou2020meta"}
    for table in published().tables.values():
        systems |= {system_name(row.key.system): row.cite for row in table.rows if row.cite}
    return {name: published().citations[cite] for name, cite in sorted(systems.items())}
