"""The leaderboard as one page of Markdown."""

from bench.leaderboard.report import TITLE, LeaderboardReport, ReportSection, ReportTable, build_sections


def render_markdown(report: LeaderboardReport) -> str:
    """Return the leaderboard as Markdown."""
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
