"""Removal of what the brief of a session has from a summary, so that a closed item cannot stay there. Pure."""

from collections.abc import Sequence

from newton.dialogue.brief.brief_items import BriefItem
from newton.dialogue.brief.item_changes import extract_stems
from newton.dialogue.compaction.extractive_summary import BlockSummary
from newton.dialogue.compaction.summary_sections import SummaryPart

MAX_FURTHER_STEMS = 2  # words of content that an item of a summary may have beside those of the brief
_PARTS: tuple[SummaryPart, ...] = ("open", "rule")


def remove_brief_items(summary: BlockSummary, items: Sequence[BriefItem]) -> None:
    """Remove rules, limits, deadlines and open items that the brief has, whatever became of them there."""
    known = [stems for item in items if (stems := extract_stems(item.text))]
    for part in _PARTS:
        for text in summary.items(part):
            said = extract_stems(text)
            if any(stems <= said and len(said - stems) <= MAX_FURTHER_STEMS for stems in known):
                summary.remove(part, text)
