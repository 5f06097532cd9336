"""The files of a mirror: one memory per list item, which ends with its id, and the manifest of the folder. Pure."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from newton.brain.decision_codec import DecisionReview
from newton.brain.drafts import DecisionDraft
from newton.file_access import read_regular
from newton.heart.procedures import ProcedureVersion

MANIFEST = ".newton-mirror.json"


class MirrorManifest(BaseModel):
    """The contents of a mirror: its files, and a hash of the line of each memory, by its id."""

    agent: str
    exported_at: datetime
    files: tuple[str, ...]
    lines: dict[str, str]


MAX_FILE_BYTES = 100_000_000


def is_mirror(path: Path) -> bool:
    """Return whether a path is a folder that a mirror was written to."""
    return (path / MANIFEST).is_file()


def read_manifest(folder: Path) -> MirrorManifest | None:
    """Return the manifest of a mirror (memories as Markdown files), or None if the folder is none."""
    try:
        return MirrorManifest.model_validate_json(read_mirror_file(folder / MANIFEST))
    except (OSError, ValidationError):
        return None


def read_mirror_file(path: Path) -> str:
    """Return the text of a file of a mirror. Raises OSError as `read_regular` does, and UnicodeDecodeError."""
    return read_regular(path, max_bytes=MAX_FILE_BYTES).decode()


_ITEM = re.compile(r"[-*+]\s+(?P<text>.*?)(?:\s+\^(?P<ref>[0-9a-f]{8,32}))?\s*$")
_HEADING = re.compile(r"(?P<level>#{1,2})\s+(?P<title>.+?)\s*#*\s*$")
_BODY_HEADING = re.compile(r"^#+\s*(?:Goals|Steps)\s*$", re.IGNORECASE | re.MULTILINE)  # the text below them is moved

README = """\
# What {agent} remembers

Written by `newton export --markdown` at {at}.

- `identity.md`: the lines of the identity, by part.
- `facts/`: the current facts, one file for each subject.
- `procedures/`: the procedures, each as a skill.
- `decisions/`: the decisions with reasons and outcomes.

Edit `identity.md` and the files of `facts/`, then run `newton import` with this folder: a changed line replaces the
memory with its id (`^1a2b3c4d`), and a line without an id is stored as a new memory. A deleted line is retracted only
with `--retract`. The folder is then written anew. Changes of procedures and decisions are not read: decisions are a
record, and `newton procedures` adds procedures.
"""


class MirrorLine(NamedTuple):
    """A line of a mirror: the id of its memory, or None for a new line, its text, and the heading above it."""

    ref: str | None
    text: str
    heading: str


def to_line(text: str) -> str:
    """Return a text on one line, as a mirror shows it."""
    return " ".join(text.split())


def digest_line(text: str) -> str:
    """Return a short hash of a line, which tells whether it was changed."""
    return hashlib.sha256(to_line(text).encode()).hexdigest()[:16]


def render_list(title: str, sections: Mapping[str, Iterable[MirrorLine]]) -> str:
    """Return a file with a title and, below each heading, its lines. The heading "" has its lines below the title."""
    parts = [f"# {title}\n"]
    for heading, lines in sections.items():
        items = "\n".join(f"- {to_line(line.text)} ^{line.ref}" for line in lines)
        parts.append(f"## {heading}\n\n{items}\n" if heading else f"{items}\n")
    return "\n".join(parts)


def parse_list(text: str) -> Iterator[MirrorLine]:
    """Yield the lines of a file. The heading of a line is the nearest one above it, without marks."""
    heading = ""
    for line in text.splitlines():
        if title := _HEADING.match(line):
            heading = title["title"]
        elif (item := _ITEM.match(line.strip())) and item["text"]:
            yield MirrorLine(item["ref"], item["text"], heading)


def has_only_lines(text: str) -> bool:
    """Return whether a file consists of headings and list items, so that its import takes over all of it."""
    lines = filter(None, map(str.strip, text.splitlines()))
    return all(_HEADING.match(line) or _ITEM.match(line) for line in lines)


def render_procedure(procedure: ProcedureVersion) -> str:
    """Return a procedure as the text of a SKILL.md file, which `newton import` reads back."""
    front = [f"name: {procedure.name}", f"description: {_quote(procedure.description)}"]
    front.append(f"domain: {_quote(procedure.domain)}")
    if procedure.triggers:
        front.append(f"triggers: [{', '.join(map(_quote, procedure.triggers))}]")
    front += [
        f"{_quote(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in procedure.front_matter.items()
    ]
    goals = "\n".join(f"- {goal}" for goal in procedure.goals)
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(procedure.steps, start=1))
    parts = ["---\n" + "\n".join(front) + "\n---"]
    parts += [f"## Goals\n\n{goals}"] if goals else []
    parts += [f"## Steps\n\n{steps}"] if steps else []
    details = _BODY_HEADING.sub("", procedure.details).strip()
    parts += [details] if details else []
    return "\n\n".join(parts) + "\n"


def render_decision(draft: DecisionDraft, review: DecisionReview | None, ref: str) -> str:
    """Return a decision with its reasons and its outcome as Markdown. `ref` is the id shown in it."""
    lines = [f"# {to_line(draft.description)}", ""]
    lines += [
        f"{draft.at:%Y-%m-%d}, {draft.category}, confidence {draft.confidence:.0%}, stakes {draft.stakes}. ^{ref}"
    ]
    lines += ["", to_line(draft.context)] if draft.context else []
    lines += _section("Reasons", [f"{reason.kind}: {to_line(reason.text)}" for reason in draft.reasons])
    lines += _section("Alternatives", [to_line(one) for one in draft.alternatives])
    lines += _section("Expected", [to_line(draft.expected)] if draft.expected else [])
    if review:
        lesson = [f"Lesson: {to_line(review.lesson)}"] if review.lesson else []
        lines += _section("Outcome", [f"{review.verdict}, {review.at:%Y-%m-%d}", *lesson])
    return "\n".join(lines) + "\n"


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {item}" for item in items)] if items else []


def _quote(text: str) -> str:
    escaped = to_line(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
