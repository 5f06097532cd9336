"""The story as data: what is said in each session, and which facts hold at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from newton.content.yaml_files import parse_trusted

Interface = Literal["chat", "openai", "mcp", "http"]
INTERFACES: tuple[Interface, ...] = ("chat", "openai", "mcp", "http")
FIRST_MONDAY = datetime(2026, 9, 7, tzinfo=UTC)
TELLING = ("fact", "change", "again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the story: what is said, and what it does with the matter `key`."""

    say: str
    act: str = "talk"
    key: str = ""
    more: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session: when it begins, the interface by which it is held, and its lines."""

    name: str
    at: datetime
    by: Interface
    lines: Sequence[Line]


def load_story() -> list[Session]:
    rows = parse_trusted((Path(__file__).parent / "story.yaml").read_text(encoding="utf-8"))
    return [
        Session(
            name=f"day-{row['day']}",
            at=FIRST_MONDAY + timedelta(days=row["day"], hours=row["hour"]),
            by=row["by"],
            lines=[_to_line(line) for line in row["lines"]],
        )
        for row in rows
    ]


def _to_line(row: str | dict[str, Any]) -> Line:
    if isinstance(row, str):
        return Line(say=row, more={})
    act, key = next(iter(row.items()))
    return Line(say=row["say"], act=act, key=key, more=row)


@dataclass(frozen=True, slots=True)
class Matter:
    """What is told of one matter, oldest first. `values` are the texts of each value."""

    key: str
    values: list[list[str]]

    @property
    def older(self) -> list[str]:
        return [text for value in self.values[:-1] for text in value]

    @property
    def newest(self) -> list[str]:
        return self.values[-1]


def list_matters(story: Sequence[Session]) -> list[Matter]:
    """Return each matter of the story with its values; a text that is told again is listed once."""
    found: dict[str, Matter] = {}
    for line in (line for session in story for line in session.lines if line.act in TELLING):
        matter = found.setdefault(line.key, Matter(line.key, []))
        if line.act != "again":
            matter.values.append([])
        if line.say not in matter.values[-1]:
            matter.values[-1].append(line.say)
    return list(found.values())


def count_acts(story: Sequence[Session], act: str, *, since: datetime | None = None) -> int:
    return sum(line.act == act for one in story if since is None or one.at >= since for line in one.lines)
