"""A memory whose text is searched for the names of entities."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.memory.memory import PERSON_TIERS, Kind, Trust


class IndexableText(NamedTuple):
    """A memory to search for names. The speaker of a message and the subject of a fact count as names in it.

    `is_told` marks a fact that was read from a message.
    """

    memory_id: UUID
    kind: Kind
    text: str
    occurred_at: datetime
    trust: Trust
    speaker: str | None
    subject: str | None
    attribute: str | None
    is_told: bool = False

    @property
    def declared_name(self) -> str | None:
        return self.subject or self.speaker

    @property
    def is_of_user(self) -> bool:
        """Return whether the user says it: a person, in a message without the name of a speaker."""
        return self.trust in PERSON_TIERS and not self.speaker
