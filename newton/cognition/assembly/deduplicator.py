"""Rejection of memories that repeat something that a context already shows. Pure."""

from collections.abc import Iterable

from newton.cognition.assembly.sections import IdentitySection
from newton.heart.identity.tenets import reduce_wish
from newton.memory.search_types import RetrievedMemory


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
