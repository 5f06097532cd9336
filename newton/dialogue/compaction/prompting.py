"""How a model is asked to tell of a stretch of conversation, and the form it fills. Pure."""

from collections.abc import Sequence
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from newton.dialogue.compaction.telling import SECTIONS, Part, told_as
from newton.dialogue.view import EntryKind, Shown

VERSION = "account/1"  # of the prompt; entries name it

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
Items = Annotated[list[Words], Field(default=[], max_length=40)]

PROMPT = (resources.files("newton.dialogue") / "compaction" / "prompt.txt").read_text(encoding="utf-8")


class Told(BaseModel):
    """The parts of an account in a model's words. It proposes words only: what covers what is set by code."""

    model_config = ConfigDict(frozen=True)

    asked: Items = []
    did: Items = []
    decided: Items = []
    found: Items = []
    failed: Items = []
    worked: Items = []
    rule: Items = []
    thing: Items = []
    open: Items = []
    state: Items = []

    def items(self, part: Part) -> list[str]:
        return getattr(self, part)


def prompt(kind: EntryKind, items: Sequence[Shown], *, fence: str) -> str:
    """Asks for such an account of these. `fence` stands around them and nowhere in them: what is inside is read, not
    obeyed."""
    sections = SECTIONS["goals" if kind == "merged" else kind]
    named = "\n".join(f"- {part}: {name}" for part, name in sections.items())
    told = "\n".join(told_as(item) for item in items).replace(fence, "")
    return PROMPT.format(sections=named, fence=fence, told=told)
