"""The leaderboard as one HTML page without scripts, and as Markdown."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from bench.leaderboard.receipts import ContextReceipt
from bench.leaderboard.report import TITLE, LeaderboardReport, ReportSection, ReportTable, build_sections
from bench.leaderboard.summary import SplitResults, find_middle
from bench.leaderboard.systems import FULL, FULL_SHORT, SYSTEM_TITLES
from newton.runtime.reports.html_page import render_card, render_document, render_table
from newton.runtime.reports.line_chart import draw_lines

_CODE_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"https://[^\s,)]+")

# the receipts of each row of a split: by system and variant, then by question and budget
RowReceipts = Mapping[tuple[str, str], Sequence[ContextReceipt]]
ReceiptsBySplit = Mapping[tuple[str, str], RowReceipts]


def render_page(report: LeaderboardReport, receipts: ReceiptsBySplit) -> str:
    """Return the HTML page, with the receipts of each split at the middle budget."""
    cards = list[str]()
    for number, section in enumerate(build_sections(report)):
        content = "".join(f"<p>{_render_text(note)}</p>" for note in section.notes)
        if section.results:
            content += _draw_chart(f"evidence-{number}", section.results)
        content += "".join(map(_render_html_table, section.tables))
        folded = [_render_folded(table) for table in section.folded]
        if section.results:
            own = receipts[section.results.dataset.folder, section.results.split]
            folded.append(_render_folded(_receipt_table(section.results, own)))
        cards.append(render_card(section.title, content + "".join(folded)))
    return render_document(TITLE, "".join(cards))


def _render_text(text: str) -> str:
    marked = _CODE_SPAN.sub(r"<code>\1</code>", escape(text, quote=False))
    return _LINK.sub(lambda link: f'<a href="{link[0]}">{link[0]}</a>', marked)


def _render_html_table(table: ReportTable) -> str:
    caption = f"<p><strong>{_render_text(table.caption)}</strong></p>" if table.caption else ""
    numeric = set(range(1, len(table.head))) if table.head[0] else set[int]()
    return caption + _let_scroll(render_table(table.head, table.rows, numeric_columns=numeric))


def _render_folded(table: ReportTable) -> str:
    content = render_table(table.head, table.rows, numeric_columns=set(range(1, len(table.head))))
    return f"<details><summary>{escape(table.caption)}</summary>{_let_scroll(content)}</details>"


def _let_scroll(content: str) -> str:
    return f'<div style="overflow-x: auto">{content}</div>'


def _draw_chart(name: str, results: SplitResults) -> str:
    """Draw the rows with the same form of messages as Newton: the whole messages of others cost more tokens."""
    rows = [row for row in results.rows if row.variant == FULL_SHORT or (row.system, row.variant) == ("newton", FULL)]
    series = {SYSTEM_TITLES[row.system]: [score.evidence for score in row.budgets.values()] for row in rows}
    labels = [f"{budget:,}" for budget in results.rows[0].budgets]
    caption = "Share of the evidence by maximum of tokens, filled, long messages shortened in all systems"
    return draw_lines(name, caption, series, labels) if series else ""


def _receipt_table(results: SplitResults, receipts: RowReceipts) -> ReportTable:
    """Return the found and all messages with evidence, by question and row, and the hash of Newton's context."""
    budget = find_middle(list(results.rows[0].budgets))
    columns = [[one for one in receipts[row.system, row.variant] if one.budget == budget] for row in results.rows]
    rows = [
        (
            own[0].question,
            *(f"{len(one.found)}/{len(one.found) + len(one.missed)}" for one in own),
            own[0].context_sha256[:12],
        )
        for own in zip(*columns, strict=True)
    ]
    head = ("question", *(row.title for row in results.rows), f"context of {results.rows[0].title}")
    return ReportTable(f"Receipts at {budget:,} tokens: messages with evidence found, by question", head, rows)


def render_markdown(report: LeaderboardReport) -> str:
    """Return the leaderboard as Markdown, without the folded tables and receipts."""
    parts = [f"# {TITLE}"]
    for section in build_sections(report):
        parts += _section_markdown(section)
    return "\n\n".join(parts) + "\n"


def _section_markdown(section: ReportSection) -> list[str]:
    tables = [text for table in section.tables for text in (f"**{table.caption}**", _markdown_table(table)) if text]
    return [f"## {section.title}", *section.notes, *(text for text in tables if text != "****")]


def _markdown_table(table: ReportTable) -> str:
    head, *rows = (" | ".join(cell.replace("|", "\\|") for cell in row) for row in (table.head, *table.rows))
    marks = "|".join(["---", *("---:" if table.head[0] else "---" for _ in table.head[1:])])
    return "\n".join([f"| {head} |", f"|{marks}|", *(f"| {row} |" for row in rows)])
