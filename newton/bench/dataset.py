"""A folder of conversations with questions: `<id>.ndjson` to import, `<id>.queries.jsonl` with what answers them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from newton.bench.scoring import GoldMessage
from newton.errors import InputError
from newton.memory.memory import TokenCounter

MESSAGES_SUFFIX, QUESTIONS_SUFFIX = ".ndjson", ".queries.jsonl"
QUESTION_EXAMPLE = '{"id": "q1", "text": "…", "type": "…", "gold": ["the ref of a line", …]}'


class DatasetQuestion(BaseModel):
    """`gold` names the lines that hold the evidence."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    type: str = "any"
    gold: tuple[str, ...]


class _MessageLine(BaseModel):
    """The fields of an import line that the benchmark reads."""

    ref: str
    content: str


class _TimestampLine(BaseModel):
    at: AwareDatetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetConversation:
    """`said` holds each line that has a ref; `ended` is when the last of them was said, if the lines tell."""

    name: str
    path: Path
    line_count: int
    messages_by_ref: dict[str, GoldMessage]
    questions: tuple[DatasetQuestion, ...]
    ended_at: datetime | None = None

    def find_gold(self, question: DatasetQuestion) -> list[GoldMessage | None]:
        return [self.messages_by_ref.get(ref) for ref in question.gold]


def load_conversations(
    folder: Path, *, count_tokens: TokenCounter, limit: int | None = None
) -> list[DatasetConversation]:
    """The folder's conversations by name, the first `limit` of them. Raises InputError when there is nothing to ask."""
    paths = [path for path in sorted(folder.glob(f"*{MESSAGES_SUFFIX}")) if _questions_path(path).is_file()]
    if not paths:
        raise InputError(
            f"{folder} holds no <id>{MESSAGES_SUFFIX} with an <id>{QUESTIONS_SUFFIX} beside it.",
            hint=f"A question is a line like {QUESTION_EXAMPLE}.",
        )
    found = [_load_conversation(path, count_tokens=count_tokens) for path in paths[:limit]]
    if not any(conversation.questions for conversation in found):
        raise InputError(
            f"The questions of {folder} name no gold.", hint=f"A question is a line like {QUESTION_EXAMPLE}."
        )
    return found


def hash_dataset(dataset: Sequence[DatasetConversation]) -> str:
    """SHA-256 over the names and bytes of all files that are used."""
    whole = hashlib.sha256()
    for path in (path for conversation in dataset for path in (conversation.path, _questions_path(conversation.path))):
        data = path.read_bytes()
        whole.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return whole.hexdigest()


def _questions_path(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(MESSAGES_SUFFIX) + QUESTIONS_SUFFIX)


def _load_conversation(path: Path, *, count_tokens: TokenCounter) -> DatasetConversation:
    asked = [
        _parse_question(raw, location=f"{_questions_path(path)}:{n}") for n, raw in _read_lines(_questions_path(path))
    ]
    lines = _read_lines(path)
    return DatasetConversation(
        name=path.name.removesuffix(MESSAGES_SUFFIX),
        path=path,
        line_count=len(lines),
        messages_by_ref=_index_messages(lines, count_tokens=count_tokens),
        # A question without gold has no share of it.
        questions=tuple(question for question in asked if question.gold),
        ended_at=max((at for _, raw in lines if (at := _parse_timestamp(raw))), default=None),
    )


def _read_lines(path: Path) -> list[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint="Give files in UTF-8 that you may read.") from None
    # Only a line feed ends a line: JSON may hold the other separators as they are.
    return [(number, raw) for number, raw in enumerate(text.split("\n"), 1) if raw.strip()]


def _parse_question(raw: str, *, location: str) -> DatasetQuestion:
    try:
        return DatasetQuestion.model_validate_json(raw)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"]
        raise InputError(f"{location} is not a question: {said}.", hint=f"Write it like {QUESTION_EXAMPLE}.") from None


def _index_messages(lines: Sequence[tuple[int, str]], *, count_tokens: TokenCounter) -> dict[str, GoldMessage]:
    """Return the messages by `ref`. Invalid lines are skipped; the import rejects them with a reason."""
    told = [said for _, raw in lines if (said := _parse_message(raw))]
    return {
        said.ref: GoldMessage(ref=said.ref, content=said.content, tokens=count_tokens(said.content)) for said in told
    }


def _parse_message(raw: str) -> _MessageLine | None:
    try:
        return _MessageLine.model_validate_json(raw)
    except ValidationError:
        return None


def _parse_timestamp(raw: str) -> datetime | None:
    try:
        return _TimestampLine.model_validate_json(raw).at
    except ValidationError:
        return None
