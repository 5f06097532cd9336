"""Datasets: a folder of conversations `<id>.ndjson` to import, with questions in `<id>.queries.jsonl`.

Each question names its gold messages: those that contain the evidence for the answer.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from bench.scoring import GoldMessage
from newton.errors import InputError
from newton.memory.memory import TokenCounter

MESSAGES_SUFFIX, QUESTIONS_SUFFIX = ".ndjson", ".queries.jsonl"
_QUESTION_HINT = 'Write one question per line: {"id": "q1", "text": "…", "type": "…", "gold": ["ref of a message", …]}.'

M = TypeVar("M", bound=BaseModel)


class DatasetQuestion(BaseModel):
    """A question. `gold` are the refs of the messages that contain the evidence for its answer."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    type: str = "any"
    gold: tuple[str, ...]


class _MessageLine(BaseModel):
    """The fields of a line of the import file that the benchmark reads."""

    ref: str
    content: str


class _TimestampLine(BaseModel):
    """The time of a line of the import file."""

    at: AwareDatetime


class DatasetMessage(BaseModel):
    """A message of the import file, for systems that are not Newton."""

    ref: str
    content: str
    role: str = "user"
    name: str | None = None
    at: AwareDatetime | None = None

    @property
    def prefix(self) -> str:
        """Return the date and the speaker, as they stand before the content."""
        day = f"[{self.at:%Y-%m-%d}] " if self.at else ""
        return f"{day}{self.name or self.role}: "


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetConversation:
    """A conversation with its questions. `ended_at` is the latest time of its messages; None if none has a time."""

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
    """Return the first `limit` conversations of the folder, sorted by name, or all of them.

    Raises InputError for an unreadable file, or if no question has gold messages.
    """
    paths = [path for path in sorted(folder.glob(f"*{MESSAGES_SUFFIX}")) if _questions_path(path).is_file()]
    if not paths:
        what = f"{folder} contains no file ID{MESSAGES_SUFFIX} with a file ID{QUESTIONS_SUFFIX} of the same ID."
        raise InputError(what, hint=_QUESTION_HINT)
    found = [_load_conversation(path, count_tokens=count_tokens) for path in paths[:limit]]
    if not any(conversation.questions for conversation in found):
        raise InputError(f"No question in {folder} names the messages with its evidence.", hint=_QUESTION_HINT)
    return found


def read_messages(conversation: DatasetConversation) -> list[DatasetMessage]:
    """Return the messages of a conversation in their order."""
    lines = (_parse_line(raw, DatasetMessage) for _, raw in _read_lines(conversation.path))
    return [line for line in lines if line]


def hash_dataset(dataset: Sequence[DatasetConversation]) -> str:
    """Return the SHA-256 hash of the names and contents of all files of the conversations."""
    digest = hashlib.sha256()
    for path in (path for conversation in dataset for path in (conversation.path, _questions_path(conversation.path))):
        data = path.read_bytes()
        digest.update(f"{path.name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def _questions_path(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(MESSAGES_SUFFIX) + QUESTIONS_SUFFIX)


def _load_conversation(path: Path, *, count_tokens: TokenCounter) -> DatasetConversation:
    questions_path, lines = _questions_path(path), _read_lines(path)
    questions = [_parse_question(raw, location=f"{questions_path}:{n}") for n, raw in _read_lines(questions_path)]
    messages = [message for _, raw in lines if (message := _parse_line(raw, _MessageLine))]
    return DatasetConversation(
        name=path.name.removesuffix(MESSAGES_SUFFIX),
        path=path,
        line_count=len(lines),
        messages_by_ref={
            m.ref: GoldMessage(ref=m.ref, content=m.content, tokens=count_tokens(m.content)) for m in messages
        },
        questions=tuple(question for question in questions if question.gold),  # without gold there is no recall
        ended_at=max((line.at for _, raw in lines if (line := _parse_line(raw, _TimestampLine))), default=None),
    )


def _read_lines(path: Path) -> list[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", hint="Use UTF-8 files that you may read.") from None
    # Only a line feed ends a line: JSON may contain the other separators unescaped.
    return [(number, raw) for number, raw in enumerate(text.split("\n"), 1) if raw.strip()]


def _parse_question(raw: str, *, location: str) -> DatasetQuestion:
    try:
        return DatasetQuestion.model_validate_json(raw)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"]
        raise InputError(f"{location} is not a question: {reason}.", hint=_QUESTION_HINT) from None


def _parse_line(raw: str, model: type[M]) -> M | None:
    """Convert a line to a model; return None if it is invalid. The import later reports the reason."""
    try:
        return model.model_validate_json(raw)
    except ValidationError:
        return None
