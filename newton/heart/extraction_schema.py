"""What a model may propose after it has read a conversation, and the prompts that ask for it. Pure."""

from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from newton.memory.representations import one_line

MAX_PROPOSALS = 20  # proposals of a kind from one conversation

SentenceText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
ShortName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]


class ExtractionModel(BaseModel):
    """The model proposes words only: who said it, its trust and its state are set by code."""

    model_config = ConfigDict(frozen=True)


class ProposedFact(ExtractionModel):
    content: SentenceText
    subject: ShortName | None = None
    attribute: ShortName | None = None


class ProposedProcedure(ExtractionModel):
    name: ShortName
    description: SentenceText
    steps: list[SentenceText] = Field(min_length=1, max_length=MAX_PROPOSALS)


class ProposedCensor(ExtractionModel):
    trigger: SentenceText
    reason: SentenceText


class ExtractionOutput(ExtractionModel):
    """Everything taken from one conversation."""

    title: ShortName | None = None
    summary: SentenceText | None = None
    outcome: Literal["success", "partial", "failure"] | None = None
    facts: list[ProposedFact] = Field(default=[], max_length=MAX_PROPOSALS)
    procedures: list[ProposedProcedure] = Field(default=[], max_length=MAX_PROPOSALS)
    censors: list[ProposedCensor] = Field(default=[], max_length=MAX_PROPOSALS)


class SameFactOutput(ExtractionModel):
    """A judge's answer."""

    same: bool


class ShortenedOutput(ExtractionModel):
    """The same words, shorter."""

    words: SentenceText


def build_extraction_prompt(lines: Sequence[tuple[str, str]], *, day: datetime) -> str:
    """Asks for what is worth knowing of the lines, each a speaker and words."""
    said = "\n".join(f"{one_line(speaker)}: {_escape_fence(words)}" for speaker, words in lines)
    return _load_prompt("extract.md").format(lines=said, day=f"{day:%Y-%m-%d}")


def build_same_fact_prompt(new: str, known: str) -> str:
    """Asks whether two statements say the same."""
    return _load_prompt("judge.md").format(told=_escape_fence(new), known=_escape_fence(known))


def build_shortening_prompt(text: str, *, max_tokens: int) -> str:
    """Asks for the same in at most so many tokens."""
    return _load_prompt("compress.md").format(words=_escape_fence(text), most=max_tokens)


def _escape_fence(text: str) -> str:
    """One line that cannot close the fence it stands in."""
    return one_line(text).replace("<", "‹").replace(">", "›")


def _load_prompt(name: str) -> str:
    return (resources.files("newton.heart") / "prompts" / name).read_text(encoding="utf-8")
