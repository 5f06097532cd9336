"""Importance of the items of a summary: which of them stay when earlier summaries are merged. Pure."""

import re
from collections.abc import Mapping, Sequence

from newton.dialogue.brief.item_changes import extract_stems
from newton.dialogue.compaction.summary_sections import SummaryPart
from newton.text import sentences

FIRST_REQUEST_BONUS = 10.0  # what a conversation began with explains everything after it
LATEST_BONUS = 1.0  # of the last item of a part
MAX_SUPPORT = 4  # other items with the same words that count
SUPPORT_WEIGHT = 0.5  # of each of them
MIN_SHARED_STEMS = 2  # words that two items on the same matter share at least

_REASON = re.compile(r"\b(?:because|since|so that|in order to|therefore|due to|otherwise)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d")


def rank_items(items: Mapping[SummaryPart, Sequence[str]]) -> dict[SummaryPart, list[str]]:
    """Return the items of each part, the most important first; of equally important ones the latest first.

    An item is important if it decides, forbids or reports an error, if it has names, numbers or a reason, and if other
    items are about the same matter. The first request and the last item of each part are important.
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
    """Return how much a text says that its reader could not guess."""
    cue = sentences.classify_sentence(text)
    has_name = bool(sentences.find_names(text[: sentences.MAX_SENTENCE_CHARS]))
    signs = (cue in ("decision", "constraint", "error"), has_name, bool(_NUMBER.search(text)))
    return sum(signs) + 0.5 * bool(_REASON.search(text))
