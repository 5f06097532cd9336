"""The parts of a summary with their headings, and the ranking of their items for a merge of summaries. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from newton.dialogue.brief.item_detection import extract_stems
from newton.dialogue.view import EntryKind
from newton.text import sentences

SummaryPart = Literal["asked", "did", "decided", "found", "failed", "worked", "rule", "thing", "open", "state"]

PARTS: tuple[SummaryPart, ...] = get_args(SummaryPart)

# The headings of the parts by kind of block, in order.
SECTIONS: Mapping[EntryKind, Mapping[SummaryPart, str]] = {
    "tools": {
        "decided": "Strategy",
        "did": "Operations",
        "found": "Discoveries",
        "failed": "Dead Ends",
        "worked": "What Worked",
        "thing": "Critical Artifacts",
        "state": "Status",
    },
    "turn": {
        "asked": "Asked",
        "worked": "Milestones",
        "decided": "Key Decisions",
        "rule": "Constraints",
        "did": "Operations",
        "found": "Findings",
        "failed": "Dead Ends",
        "thing": "Critical Artifacts",
        "open": "Open Items",
        "state": "Current State",
    },
    "goals": {
        "asked": "Goal Arc",
        "decided": "Human Direction",
        "worked": "What Was Achieved",
        "found": "Findings",
        "failed": "Dead Ends",
        "rule": "Lasting Constraints",
        "thing": "Key Artifacts",
        "open": "Open Items",
    },
}
HEADINGS: Mapping[EntryKind, str] = {
    "tools": "[SUMMARIZED] What I did with tools here:",
    "turn": "[SUMMARIZED] Earlier in this conversation:",
    "goals": "[GOAL BATCH] Earlier in this conversation:",
    "merged": "[GOAL BATCH] The beginning of this conversation:",
}
# Items selected per round when not all fit. Parts that prevent mistakes and repetition come first; names are short.
ITEMS_PER_ROUND: Mapping[SummaryPart, int] = {
    "decided": 2,
    "failed": 2,
    "rule": 2,
    "open": 2,
    "thing": 3,
    "worked": 1,
    "asked": 1,
    "found": 1,
    "state": 1,
    "did": 1,
}


FIRST_REQUEST_BONUS = 10.0  # what a conversation began with explains everything after it
LATEST_BONUS = 1.0  # of the last item of a part
MAX_SUPPORT = 4  # other items with the same words that count
SUPPORT_WEIGHT = 0.5  # of each of them
MIN_SHARED_STEMS = 2  # words that two items on the same matter share at least

_REASON = re.compile(r"\b(?:because|since|so that|in order to|therefore|due to|otherwise)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d")


def rank_items(items: Mapping[SummaryPart, Sequence[str]]) -> dict[SummaryPart, list[str]]:
    """Return the items of each part, the most important first; of equally important ones the latest first.

    An item is important if it states a decision, a prohibition or an error, if it has names, numbers or a reason, and
    if other items are on the same topic. The first request and the last item of each part are important.
    """
    stems = {text: extract_stems(text) for texts in items.values() for text in texts}
    return {part: _rank_part(part, texts, stems) for part, texts in items.items()}


def _rank_part(part: SummaryPart, texts: Sequence[str], stems: Mapping[str, frozenset[str]]) -> list[str]:
    scores: dict[str, float] = {}
    for number, text in enumerate(texts):
        shared = sum(len(stems[text] & other) >= MIN_SHARED_STEMS for other in stems.values()) - 1
        scores[text] = _specificity(text) + SUPPORT_WEIGHT * min(max(shared, 0), MAX_SUPPORT)
        scores[text] += FIRST_REQUEST_BONUS * (part == "asked" and number == 0)
        scores[text] += LATEST_BONUS * (number == len(texts) - 1)
    order = {text: number for number, text in enumerate(texts)}
    return sorted(order, key=lambda text: (-scores[text], -order[text]))


def _specificity(text: str) -> float:
    """Return a score for decisions, constraints, errors, names, numbers and reasons in a text."""
    cue = sentences.classify_sentence(text)
    has_name = bool(sentences.find_names(text[: sentences.MAX_SENTENCE_CHARS]))
    signs = (cue in ("decision", "constraint", "error"), has_name, bool(_NUMBER.search(text)))
    return sum(signs) + 0.5 * bool(_REASON.search(text))
