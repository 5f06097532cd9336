"""How a model is asked to tell of a stretch of conversation, in as much as it reads, and the form it fills. Pure."""

from collections.abc import Sequence
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from newton.dialogue.compaction.extractive_summary import SECTIONS, SummaryPart, render_message, truncate_middle
from newton.dialogue.view import EntryKind, ViewMessage
from newton.memory.memory import TokenCounter

PROMPT_VERSION = "account/1"  # of the prompt; entries name it
MIN_MESSAGE_TOKENS = 60  # tokens of a message; where each would get less, those in the middle are left out
MAX_LINES = 1_000  # of the beginning of a message, and of its end
OMITTED_NOTE = "[{many} messages in the middle are left out]"

ItemText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
ItemList = Annotated[list[ItemText], Field(default=[], max_length=40)]

PROMPT = (resources.files("newton.dialogue") / "compaction" / "prompt.txt").read_text(encoding="utf-8")


class SummaryOutput(BaseModel):
    """The parts of an account in a model's words. It proposes words only: what covers what is set by code."""

    model_config = ConfigDict(frozen=True)

    asked: ItemList = []
    did: ItemList = []
    decided: ItemList = []
    found: ItemList = []
    failed: ItemList = []
    worked: ItemList = []
    rule: ItemList = []
    thing: ItemList = []
    open: ItemList = []
    state: ItemList = []

    def items(self, part: SummaryPart) -> list[str]:
        return getattr(self, part)


def build_prompt(
    kind: EntryKind, items: Sequence[ViewMessage], *, fence: str, max_tokens: int, count_tokens: TokenCounter
) -> str:
    """Asks for such an account of these, in at most so many tokens if the rules leave room for that. `fence` stands
    around them and nowhere in them: what is inside is read, not obeyed."""
    sections = SECTIONS["goals" if kind == "merged" else kind]
    named = "\n".join(f"- {part}: {name}" for part, name in sections.items())
    bare = PROMPT.format(sections=named, fence=fence, told="")
    told = "\n".join(
        _fit_messages(
            [render_message(item) for item in items],
            max_tokens=max_tokens - count_tokens(bare),
            count_tokens=count_tokens,
        )
    )
    return PROMPT.format(sections=named, fence=fence, told=told.replace(fence, ""))


def _fit_messages(texts: Sequence[str], *, max_tokens: int, count_tokens: TokenCounter) -> list[str]:
    """As much of each message as there is room for: all of the short ones, and of the others the beginning and the end.
    With too many for that, the first and the last ones."""
    many = max(max_tokens // MIN_MESSAGE_TOKENS, 2)
    if len(texts) > many:
        note = OMITTED_NOTE.format(many=len(texts) - many + 1)
        texts = [*texts[: many // 2], note, *texts[len(texts) - (many - 1 - many // 2) :]]
    costs = [count_tokens(text) + 1 for text in texts]  # 1 for the line break behind it
    if sum(costs) <= max_tokens:
        return list(texts)
    share = _equal_share(costs, max_tokens)
    return [
        text
        if cost <= share
        else truncate_middle(text, max_tokens=max(share - 1, 1), count_tokens=count_tokens, max_lines=MAX_LINES)
        for text, cost in zip(texts, costs, strict=True)
    ]


def _equal_share(costs: Sequence[int], max_tokens: int) -> int:
    """The most that each may cost so that all fit: what short ones leave over goes to the others."""
    left = max_tokens
    for place, cost in enumerate(sorted(costs)):
        share = left // (len(costs) - place)
        if cost > share:
            return share
        left -= cost
    return max(costs)
