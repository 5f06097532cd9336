"""Division of new lines into calls that fit the context window of a model. Pure."""

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from newton.heart.reconciliation.answer_reader import SCHEMA
from newton.heart.reconciliation.prompt import number_batch, render_prompt
from newton.heart.reconciliation.reconciling_types import KnownItem, NewLine, ReconcilingInput
from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.memory.memory import TokenCounter

MAX_LINES = 40  # new ones in one call: of more, a model loses some
MAX_KNOWN = 60
MIN_KNOWN, KNOWN_PER_LINE = 36, 4  # facts, procedures and decisions for a line of a person, up to the maximum
CONTEXT_LINES = 3  # already read, before the new ones
ANSWER_TOKENS_PER_ITEM = 80  # an item for each draft, and one for each line of a person
MIN_ANSWER_TOKENS = 300
MESSAGE_TOKENS = 30  # around the messages
SAFETY_SHARE = 0.95  # of the window, because token counts of other models are estimates
WORD_WEIGHT = 0.15  # of a shared word, beside the cosine similarity
OTHER_KINDS_WEIGHT = 0.2  # of rules, wishes, decisions and open questions, of which there are few


class BatchSize(NamedTuple):
    """The maximum number of new lines and of known items of a call."""

    lines: int
    known: int


# From the largest to the smallest.
SIZES = (
    BatchSize(MAX_LINES, MAX_KNOWN),
    BatchSize(24, 40),
    BatchSize(16, 24),
    BatchSize(8, 16),
    BatchSize(4, 10),
    BatchSize(2, 6),
    BatchSize(1, 4),
)


def split_batches(batch: ReconcilingInput, *, window_tokens: int, count_tokens: TokenCounter) -> list[ReconcilingInput]:
    """Return the input as numbered batches that fit the window of the model with their answers, oldest lines first.

    Each batch has up to three lines before its new ones as context, and the known items nearest to its lines. The list
    is empty if the window is too small for one line; a line that is too long for any batch is shortened in the prompt.
    """
    new = [line for line in batch.lines if not line.is_read]
    budget = int(window_tokens * SAFETY_SHARE)
    batches: list[ReconcilingInput] = []
    start = 0
    while start < len(new):
        candidates = (_build_batch(batch, new[start : start + size.lines], size.known) for size in SIZES)
        fitting = (one for one in candidates if count_prompt(one, count_tokens) + estimate_answer(one) <= budget)
        candidate = next(fitting, None)
        if candidate is None:
            return []
        batches.append(candidate)
        start += sum(not line.is_read for line in candidate.lines)
    return batches


def estimate_answer(batch: ReconcilingInput) -> int:
    """Return the maximum number of tokens to ask of the model for the answer to a batch."""
    persons = [line for line in batch.lines if line.source == "person" and not line.is_read]
    items = len(persons) + sum(len(batch.list_drafts(line)) for line in persons)
    return MIN_ANSWER_TOKENS + ANSWER_TOKENS_PER_ITEM * items


def count_prompt(batch: ReconcilingInput, count_tokens: TokenCounter) -> int:
    """Return the number of tokens of the prompt of a batch, with its schema."""
    prompt = render_prompt(batch)
    return count_tokens(prompt.system) + count_tokens(prompt.user) + count_tokens(str(SCHEMA)) + MESSAGE_TOKENS


def _build_batch(batch: ReconcilingInput, new: Sequence[NewLine], max_known: int) -> ReconcilingInput:
    first = batch.lines.index(new[0])
    before = [replace(line, is_read=True) for line in batch.lines[max(0, first - CONTEXT_LINES) : first]]
    lines = (*before, *new)
    persons = sum(line.source == "person" for line in new)
    new_ids = {line.memory_id for line in new}
    drafts = [item for item in batch.known if item.drafted_by in new_ids]
    limit = min(max_known, MIN_KNOWN + KNOWN_PER_LINE * persons)
    # a sentence of a later line is not known yet; those of the new lines take no room from what they may change
    known = _pick_nearest([one for one in batch.known if one.drafted_by is None], lines, limit)
    return number_batch(replace(batch, lines=lines, known=(*drafts, *known)))


def _pick_nearest(known: Sequence[KnownItem], lines: Sequence[NewLine], limit: int) -> list[KnownItem]:
    """Return the known items nearest to the lines, by their vectors and words; rules and wishes first."""
    stems = frozenset[str]().union(*(list_stems(line.text) for line in lines if line.source != "foreign"))
    ids = {line.memory_id for line in lines}
    nearest = sorted(known, key=lambda item: _measure_nearness(item, stems, ids), reverse=True)
    orders = [item for item in nearest if item.kind in ("rule", "wish")][:limit]
    others = [item for item in nearest if item.kind not in ("rule", "wish")]
    return [*orders, *others[: max(limit - len(orders), limit // 2)]]


def _measure_nearness(item: KnownItem, stems: frozenset[str], memory_ids: Set[UUID]) -> float:
    cosines = (cosine for memory_id, cosine in item.similarities.items() if memory_id in memory_ids)
    shared = share_stems(list_stems(f"{item.text} {item.attribute}"), stems)
    return max(cosines, default=0.0) + WORD_WEIGHT * len(shared) + (0.0 if item.kind == "fact" else OTHER_KINDS_WEIGHT)
