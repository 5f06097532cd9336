"""Memories as a search returns them, and what assembles them into a context."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.budget import allocate_budget, reserve_layer
from newton.cognition.assembly.render import TextBlock, count_day_tokens, count_header_tokens
from newton.cognition.assembly.sections import CensorSection, IdentitySection
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.content.profiles import load_profiles
from newton.ids import new_id
from newton.memory.representations import make_short_forms
from newton.memory.search_types import RetrievedMemory
from newton.providers import token_counter
from tests.support import NOON

EVIDENCE = load_profiles()["evidence"]
HEADERS, DAYS = count_header_tokens(token_counter.count), count_day_tokens(token_counter.count)


def found(number: int | None = None, **changed: Any) -> RetrievedMemory:
    """A fact of which nothing is known besides what is given."""
    plain = RetrievedMemory(
        memory_id=new_id() if number is None else UUID(int=number),
        kind="fact",
        state="NEW",
        micro="m",
        summary="s",
        micro_tokens=3,
        summary_tokens=3,
        word_count=5,
        confidence=None,
        importance=0.1,
        outcome=None,
        uses=0,
        occurred_at=NOON,
        created_at=NOON,
        accessed_at=None,
        confirmed_at=None,
        trust="user",
        quarantined=False,
        ref=None,
        thread_id=None,
        position=None,
        similarity=0.5,
        lexical=0.5,
        relevance=1.0,
    )
    return plain._replace(**changed)


def said(number: int, text: str, at: datetime = NOON, *, prefix: str = "", **changed: Any) -> RetrievedMemory:
    """A memory of this text, in the forms that its kind has in a context."""
    form = make_short_forms(text, count_tokens=token_counter.count, prefix=prefix, max_tokens=400, keep_end=True)
    memory = found(number, occurred_at=at, created_at=at, importance=None, similarity=0.9)
    return memory._replace(**{**asdict(form), **changed})


def score_in_order(best_first: Sequence[RetrievedMemory]) -> list[ScoredMemory]:
    return [ScoredMemory(one, (1.0,) * len(FEATURE_NAMES), 1 - n / 100) for n, one in enumerate(best_first)]


def make_setting(total: int = 8_000, **changed: Any) -> AssemblyInput:
    """The setting of a context without identity, censors and all else, but for what is given."""
    plain: dict[str, Any] = {
        "input": "?",
        "budget": reserve_layer(allocate_budget(total), "documents", 1_000),
        "profile": EVIDENCE,
        "identity": IdentitySection(),
        "min_evidence": 0.0,
        "is_adaptive": False,
        "frame_section": TextBlock("", 0),
        "censors": CensorSection(),
        "focus": (),
        "open_decisions": (),
        "calibration_note": None,
        "triggered": frozenset(),
        "unranked": frozenset(),
        "extra": (),
        "sent_messages": None,
        "header_tokens": HEADERS,
        "day_tokens": DAYS,
    }
    return AssemblyInput(**{**plain, **changed})
