"""Rejection of memories that repeat something that a context already shows. Pure."""

import re
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from uuid import UUID

from newton.cognition.assembly.sections import IdentitySection
from newton.heart.identity.tenets import reduce_wish
from newton.memory.search_types import ASSISTANT, RetrievedMemory

REPEATS_STATED_FACT = "its fact says the same"
IS_FACT_SOURCE = "a fact that was made of it is in the context"

_PERSON = "User"  # the speaker of a message of the person, if no name is known
# A fact has no date by which "yesterday" is understood, so the message is needed too.
_RELATIVE_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|now|just|recently|lately|ago|last|next"
    r"|this (?:morning|evening|week|month|year|weekend)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:ok|okay|hi|hello|hey|oh|also|and|so|well|btw|by the way|fyi|please|remember|note|just so you know"
    r"|yes|yeah|no)\b(?: that\b)?[\s,:;!.–—-]+)+",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")


class MemoryDeduplicator:
    """Rejects memories that repeat an identity line or a memory that was checked earlier."""

    def __init__(self, identity: IdentitySection, shown: Iterable[RetrievedMemory]) -> None:
        self._identity_reasons = {reduce_wish(tenet.text): "already in the identity" for tenet in identity.shown}
        removed = map(reduce_wish, identity.removed_texts)
        self._identity_reasons |= dict.fromkeys(removed, "repeats a removed line of the identity")
        self._shown_texts = {found.dedup_text for found in shown}

    def find_duplicate_reason(self, found: RetrievedMemory, *, other_reason: str | None = None) -> str | None:
        """Return why the memory is a duplicate, else `other_reason`, why it is rejected anyway.

        If there is no reason to reject it, remember its text, so that later memories with the same text are rejected.
        """
        if self._identity_reasons and (reason := self._identity_reasons.get(reduce_wish(found.spoken_text))):
            return reason
        if found.kind == "relation":  # where its fact is shown, the relation is left out later, not the fact
            return other_reason
        if found.dedup_text in self._shown_texts:
            return "repeats a better candidate"
        if other_reason is None:
            self._shown_texts.add(found.dedup_text)
        return other_reason


def find_repeated_messages(memories: Iterable[RetrievedMemory]) -> Set[UUID]:
    """Return the ids of the messages that say only what a fact among the memories says, which was made of them.

    A message with a relative time is none of them: its date belongs to it.
    """
    found = list(memories)
    messages = [one for one in found if one.kind == "exchange"]
    facts = [one for one in found if one.kind == "fact"]
    if not facts or not messages:
        return frozenset()
    stating = {(f.stated_thread_id, f.stated_position, _reduce(f.summary)) for f in facts if f.stated_thread_id}
    texts = {_reduce(fact.summary) for fact in facts}
    return {one.memory_id for one in messages if _is_stated(one, stating, texts)}


def find_fact_sources(memories: Sequence[RetrievedMemory]) -> Set[UUID]:
    """Return the ids of the messages of which facts among the memories were made, whatever else they say."""
    sources = {(f.stated_thread_id, f.stated_position) for f in memories if f.kind == "fact" and f.stated_thread_id}
    return {one.memory_id for one in memories if one.kind == "exchange" and (one.thread_id, one.position) in sources}


def _is_stated(message: RetrievedMemory, stating: Set[tuple[UUID | None, int | None, str]], texts: Set[str]) -> bool:
    text = _reduce(message.spoken_text)
    if text not in texts or _RELATIVE_TIME.search(message.spoken_text):
        return False
    speaker = message.summary.partition("] ")[2].partition(": ")[0]
    if speaker == ASSISTANT:
        return False
    # two people may say the same of themselves
    return speaker == _PERSON or (message.thread_id, message.position, text) in stating


@lru_cache(maxsize=4_096)
def _reduce(text: str) -> str:
    return " ".join(_WORD.findall(_OPENING.sub("", text).casefold()))
