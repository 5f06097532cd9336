"""A folder of conversations with questions: `<id>.ndjson` to import, `<id>.queries.jsonl` with what answers them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from newton.bench.measure import Gold
from newton.errors import InputError
from newton.memory.memory import Count

LINES, QUESTIONS = ".ndjson", ".queries.jsonl"
SHAPE = '{"id": "q1", "text": "…", "type": "…", "gold": ["the ref of a line", …]}'


class Question(BaseModel):
    """`gold` names the lines that hold the evidence."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    type: str = "any"
    gold: tuple[str, ...]


class _Told(BaseModel):
    """What matters here of a line to import."""

    ref: str
    content: str


class _Dated(BaseModel):
    at: AwareDatetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """`said` holds each line that has a ref; `ended` is when the last of them was said, if the lines tell."""

    name: str
    path: Path
    lines: int
    said: dict[str, Gold]
    questions: tuple[Question, ...]
    ended: datetime | None = None

    def gold(self, question: Question) -> list[Gold | None]:
        return [self.said.get(ref) for ref in question.gold]


def conversations(folder: Path, *, count: Count, limit: int | None = None) -> list[Conversation]:
    """The folder's conversations by name, the first `limit` of them. Raises InputError when there is nothing to ask."""
    paths = [path for path in sorted(folder.glob(f"*{LINES}")) if _questions_of(path).is_file()]
    if not paths:
        raise InputError(
            f"{folder} holds no <id>{LINES} with an <id>{QUESTIONS} beside it.",
            hint=f"A question is a line like {SHAPE}.",
        )
    found = [_conversation(path, count=count) for path in paths[:limit]]
    if not any(conversation.questions for conversation in found):
        raise InputError(f"The questions of {folder} name no gold.", hint=f"A question is a line like {SHAPE}.")
    return found


def fingerprint(found: Sequence[Conversation]) -> str:
    """SHA-256 over the names and bytes of all files that are used."""
    whole = hashlib.sha256()
    for path in (path for conversation in found for path in (conversation.path, _questions_of(conversation.path))):
        data = path.read_bytes()
        whole.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


def _questions_of(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(LINES) + QUESTIONS)


def _conversation(path: Path, *, count: Count) -> Conversation:
    asked = [_question(raw, at=f"{_questions_of(path)}:{n}") for n, raw in _lines(_questions_of(path))]
    lines = _lines(path)
    return Conversation(
        name=path.name.removesuffix(LINES),
        path=path,
        lines=len(lines),
        said=_said(lines, count=count),
        # A question without gold has no share of it.
        questions=tuple(question for question in asked if question.gold),
        ended=max((at for _, raw in lines if (at := _at(raw))), default=None),
    )


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint="Give files in UTF-8 that you may read.") from None
    # Only a line feed ends a line: JSON may hold the other separators as they are.
    return [(number, raw) for number, raw in enumerate(text.split("\n"), 1) if raw.strip()]


def _question(raw: str, *, at: str) -> Question:
    try:
        return Question.model_validate_json(raw)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"]
        raise InputError(f"{at} is not a question: {said}.", hint=f"Write it like {SHAPE}.") from None


def _said(lines: Sequence[tuple[int, str]], *, count: Count) -> dict[str, Gold]:
    """What stands under each ref. A line that is no good is left to the import, which refuses it with a reason."""
    told = [said for _, raw in lines if (said := _told(raw))]
    return {said.ref: Gold(ref=said.ref, content=said.content, tokens=count(said.content)) for said in told}


def _told(raw: str) -> _Told | None:
    try:
        return _Told.model_validate_json(raw)
    except ValidationError:
        return None


def _at(raw: str) -> datetime | None:
    try:
        return _Dated.model_validate_json(raw).at
    except ValidationError:
        return None
