"""Prompt that asks a model to summarize messages, schema of its answer, and removal of what the brief has. Pure."""

from collections.abc import Sequence
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from newton.dialogue.brief.brief_items import BriefItem, BriefKind
from newton.dialogue.brief.item_detection import extract_stems
from newton.dialogue.compaction.extractive_summary import BlockSummary, render_message, truncate_middle
from newton.dialogue.compaction.summary_sections import SECTIONS, SummaryPart
from newton.dialogue.compaction.view_budget import equal_share
from newton.dialogue.view import EntryKind, ViewMessage
from newton.memory.memory import TokenCounter

MAX_FURTHER_STEMS = 2  # words of content that an item of a summary may have beside those of the brief
_PARTS: tuple[SummaryPart, ...] = ("open", "rule")


def remove_brief_items(summary: BlockSummary, items: Sequence[BriefItem]) -> None:
    """Remove from a summary what the brief has: rules, constraints and open items, whatever their status there.

    The brief is the list of these items that every context of the session shows, word for word.
    """
    known = [stems for item in items if (stems := extract_stems(item.text))]
    for part in _PARTS:
        for text in summary.items(part):
            item_stems = extract_stems(text)
            if any(stems <= item_stems and len(item_stems - stems) <= MAX_FURTHER_STEMS for stems in known):
                summary.remove(part, text)


PROMPT_VERSION = "summary/3"  # of the prompt; stored with each entry
MIN_MESSAGE_TOKENS = 60  # with less for each message, those in the middle are left out
MAX_LINES = 1_000  # of the beginning and of the end of a message
OMITTED_NOTE = "[{many} messages in the middle are left out]"

ItemText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
ItemList = Annotated[list[ItemText], Field(default=[], max_length=40)]

PROMPT = (resources.files("newton.dialogue") / "compaction" / "llm_summary.md").read_text(encoding="utf-8")


class BriefProposal(BaseModel):
    """A goal, deadline, rule, limit or open item that the user stated, as a quotation of the user's words."""

    model_config = ConfigDict(frozen=True)

    kind: BriefKind
    quote: ItemText


class SummaryOutput(BaseModel):
    """The model's summary, a list of items per part. Code, not the model, sets the range of messages that it covers.

    `brief` are proposals for the brief of the session; code verifies their quotations.
    """

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
    brief: Annotated[list[BriefProposal], Field(default=[], max_length=20)] = []

    def items(self, part: SummaryPart) -> list[str]:
        return getattr(self, part)


def build_prompt(
    kind: EntryKind, items: Sequence[ViewMessage], *, fence: str, max_tokens: int, count_tokens: TokenCounter
) -> str:
    """Return the prompt for a summary of these messages, within `max_tokens` if possible.

    The messages are enclosed by the text `fence`, which is removed from them, so that no message can end the enclosure.
    """
    sections = SECTIONS["goals" if kind == "merged" else kind]
    named = "\n".join(f"- {part}: {name}" for part, name in sections.items())
    bare = PROMPT.format(sections=named, fence=fence, transcript="")
    texts, left = [render_message(item) for item in items], max_tokens - count_tokens(bare)
    messages = _fit_messages(texts, max_tokens=left, count_tokens=count_tokens)
    return PROMPT.format(sections=named, fence=fence, transcript="\n".join(messages).replace(fence, ""))


def _fit_messages(texts: Sequence[str], *, max_tokens: int, count_tokens: TokenCounter) -> list[str]:
    """Shorten messages to `max_tokens` in total.

    Short ones stay whole; long ones keep beginning and end. If there are too many messages, those in the middle are
    left out.
    """
    max_messages = max(max_tokens // MIN_MESSAGE_TOKENS, 2)
    if len(texts) > max_messages:
        head, omitted = max_messages // 2, len(texts) - max_messages + 1
        texts = [*texts[:head], OMITTED_NOTE.format(many=omitted), *texts[head + omitted :]]
    costs = [count_tokens(text) + 1 for text in texts]  # 1 for the line break
    if sum(costs) <= max_tokens:
        return list(texts)
    share = equal_share(costs, max_tokens)
    return [
        text
        if cost <= share
        else truncate_middle(text, max_tokens=max(share - 1, 1), count_tokens=count_tokens, max_lines=MAX_LINES)
        for text, cost in zip(texts, costs, strict=True)
    ]
