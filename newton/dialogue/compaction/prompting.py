"""How a model is asked to tell of a stretch of conversation, in as much as it reads, and the form it fills. Pure."""

from collections.abc import Sequence
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from newton.dialogue.compaction.telling import SECTIONS, Part, told_as, trimmed
from newton.dialogue.view import EntryKind, Shown
from newton.memory.memory import Count

VERSION = "account/1"  # of the prompt; entries name it
LEAST_SHARE = 60  # tokens of a message; where each would get less, those in the middle are left out
MOST_LINES = 1_000  # of the beginning of a message, and of its end
LEFT_OUT = "[{many} messages in the middle are left out]"

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


def prompt(kind: EntryKind, items: Sequence[Shown], *, fence: str, most: int, count: Count) -> str:
    """Asks for such an account of these, in at most so many tokens if the rules leave room for that. `fence` stands
    around them and nowhere in them: what is inside is read, not obeyed."""
    sections = SECTIONS["goals" if kind == "merged" else kind]
    named = "\n".join(f"- {part}: {name}" for part, name in sections.items())
    bare = PROMPT.format(sections=named, fence=fence, told="")
    told = "\n".join(_read([told_as(item) for item in items], most=most - count(bare), count=count))
    return PROMPT.format(sections=named, fence=fence, told=told.replace(fence, ""))


def _read(told: Sequence[str], *, most: int, count: Count) -> list[str]:
    """As much of each message as there is room for: all of the short ones, and of the others the beginning and the end.
    With too many for that, the first and the last ones."""
    many = max(most // LEAST_SHARE, 2)
    if len(told) > many:
        note = LEFT_OUT.format(many=len(told) - many + 1)
        told = [*told[: many // 2], note, *told[len(told) - (many - 1 - many // 2) :]]
    costs = [count(text) + 1 for text in told]  # 1 for the line break behind it
    if sum(costs) <= most:
        return list(told)
    share = _share(costs, most)
    return [
        text if cost <= share else trimmed(text, most=max(share - 1, 1), count=count, lines=MOST_LINES)
        for text, cost in zip(told, costs, strict=True)
    ]


def _share(costs: Sequence[int], most: int) -> int:
    """The most that each may cost so that all fit: what short ones leave over goes to the others."""
    left = most
    for place, cost in enumerate(sorted(costs)):
        share = left // (len(costs) - place)
        if cost > share:
            return share
        left -= cost
    return max(costs)
