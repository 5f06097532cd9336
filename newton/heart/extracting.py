"""What a model may propose after it has read a conversation, and the prompts that ask for it. Pure."""

from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from newton.memory.representations import one_line

MOST = 20  # proposals of a kind from one conversation

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]


class Proposal(BaseModel):
    """The model proposes words only: who said it, its trust and its state are set by code."""

    model_config = ConfigDict(frozen=True)


class ProposedFact(Proposal):
    content: Words
    subject: Name | None = None
    attribute: Name | None = None


class ProposedProcedure(Proposal):
    name: Name
    description: Words
    steps: list[Words] = Field(min_length=1, max_length=MOST)


class ProposedCensor(Proposal):
    trigger: Words
    reason: Words


class Extracted(Proposal):
    """Everything taken from one conversation."""

    title: Name | None = None
    summary: Words | None = None
    outcome: Literal["success", "partial", "failure"] | None = None
    facts: list[ProposedFact] = Field(default=[], max_length=MOST)
    procedures: list[ProposedProcedure] = Field(default=[], max_length=MOST)
    censors: list[ProposedCensor] = Field(default=[], max_length=MOST)


class Same(Proposal):
    """A judge's answer."""

    same: bool


class Shortened(Proposal):
    """The same words, shorter."""

    words: Words


def extraction_prompt(lines: Sequence[tuple[str, str]], *, day: datetime) -> str:
    """Asks for what is worth knowing of the lines, each a speaker and words."""
    said = "\n".join(f"{one_line(speaker)}: {_fenced(words)}" for speaker, words in lines)
    return _prompt("extract.md").format(lines=said, day=f"{day:%Y-%m-%d}")


def judging_prompt(told: str, known: str) -> str:
    """Asks whether two statements say the same."""
    return _prompt("judge.md").format(told=_fenced(told), known=_fenced(known))


def shortening_prompt(words: str, *, most: int) -> str:
    """Asks for the same in at most so many tokens."""
    return _prompt("compress.md").format(words=_fenced(words), most=most)


def _fenced(words: str) -> str:
    """One line that cannot close the fence it stands in."""
    return one_line(words).replace("<", "‹").replace(">", "›")


def _prompt(name: str) -> str:
    return (resources.files("newton.heart") / "prompts" / name).read_text(encoding="utf-8")
