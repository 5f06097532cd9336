"""Schemas of model answers, and prompts, for extraction, comparison of facts and shortening. Pure."""

import functools
from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from newton.memory.representations import one_line

PairRelation = Literal["same", "update", "compatible", "unsure"]

MAX_PROPOSALS = 20  # per kind and conversation

SentenceText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
ShortName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]


class ExtractionModel(BaseModel):
    """Base class of model outputs. A model only proposes texts; code sets their provenance, trust and state."""

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
    """Everything extracted from one conversation."""

    title: ShortName | None = None
    summary: SentenceText | None = None
    outcome: Literal["success", "partial", "failure"] | None = None
    facts: list[ProposedFact] = Field(default=[], max_length=MAX_PROPOSALS)
    procedures: list[ProposedProcedure] = Field(default=[], max_length=MAX_PROPOSALS)
    censors: list[ProposedCensor] = Field(default=[], max_length=MAX_PROPOSALS)


class PairRelationsOutput(ExtractionModel):
    """A model's answer on pairs of statements: one relation for each pair, in the order of the pairs.

    A relation says how the later statement of a pair relates to the earlier one.
    """

    relations: list[PairRelation]


class ShortenedOutput(ExtractionModel):
    """The shortened text."""

    words: SentenceText


def build_extraction_prompt(lines: Sequence[tuple[str, str]], *, day: datetime) -> str:
    """Return the prompt for extraction from the conversation of one day, given as pairs of speaker and text."""
    rendered = "\n".join(f"{one_line(speaker)}: {_escape_fence(text)}" for speaker, text in lines)
    return _load_prompt("extract.md").format(lines=rendered, day=f"{day:%Y-%m-%d}")


def build_pair_prompt(pairs: Sequence[tuple[datetime, str, datetime, str]]) -> str:
    """Return the prompt that asks how the two statements of each pair relate.

    Each pair is given as day and text of the earlier statement, then day and text of the later one.
    """
    rendered = "\n".join(
        f"{number}. earlier ({then:%Y-%m-%d}): {_escape_fence(earlier)}\n"
        f"   later ({now:%Y-%m-%d}): {_escape_fence(later)}"
        for number, (then, earlier, now, later) in enumerate(pairs, 1)
    )
    return _load_prompt("judge.md").format(pairs=rendered)


@functools.cache
def build_pair_schema(pairs: int) -> type[PairRelationsOutput]:
    """Return the schema of the answer on this number of pairs.

    The list in it has a maximum length, because a small model does not end an open list.
    """
    relations = (list[PairRelation], Field(max_length=pairs))
    return create_model("PairRelationsOutput", __base__=PairRelationsOutput, relations=relations)


def build_shortening_prompt(text: str, *, max_tokens: int) -> str:
    """Return the prompt that asks the model to shorten a text to at most `max_tokens` tokens."""
    return _load_prompt("compress.md").format(text=_escape_fence(text), max_tokens=max_tokens)


def _escape_fence(text: str) -> str:
    """Return the text as one line without angle brackets, so that it cannot close the tag around it in a prompt."""
    return one_line(text).replace("<", "‹").replace(">", "›")


def _load_prompt(name: str) -> str:
    return (resources.files("newton.heart") / "prompts" / name).read_text(encoding="utf-8")
