"""A page as Markdown, for documents that are read beside the code."""

from __future__ import annotations

from collections.abc import Sequence

from protorect.report.page import Block, Figure, Figures, Listing, Page, Table, Terms

GREY = "#767676"  # reads on white and on black: a picture does not know the page around it


def render_markdown(page: Page, stem: str) -> tuple[str, dict[str, str]]:
    """The page as Markdown, and the figures it refers to: names beside it, and SVG text.

    Parameters
    ----------
    page
        What to write.
    stem
        How the names of its figures begin.
    """
    figures: dict[str, str] = {}

    def keep(figure: Figure) -> str:
        name = f"{stem}-{len(figures) + 1}.svg"
        figures[name] = standing_alone(figure.svg)
        return f"![{figure.alt}]({name})\n\n*{figure.caption}*"

    parts = [f"# {page.title}", page.lead]
    for section in page.sections:
        parts.append(f"## {section.title}")
        for block in section.blocks:
            parts.append(
                "\n\n".join(map(keep, block.figures))
                if isinstance(block, Figures)
                else keep(block)
                if isinstance(block, Figure)
                else _text(block)
            )
    return "\n\n".join(parts) + "\n", figures


def standing_alone(svg: str) -> str:
    """An SVG for a file of its own, its ink a grey that reads on any ground."""
    return svg.replace("<svg ", f'<svg color="{GREY}" ', 1) + "\n"


def _text(block: Block) -> str:
    if isinstance(block, Table):
        return "\n".join([*_table(block), "", f"*{block.caption}*"])
    if isinstance(block, Terms):
        return "\n".join(f"- **{term}**: {meaning}" for term, meaning in block.terms.items())
    if isinstance(block, Listing):
        return "\n".join([block.caption, "", "```text", *block.lines, "```"])
    return str(block)


def _table(table: Table) -> list[str]:
    rule = ["---", *["---:"] * (len(table.header) - 1)]
    return [_row(row) for row in (table.header, rule, *table.rows)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
