"""JSON models of lists and records, shared by HTTP responses and the results of tools."""

from typing import Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class ViewModel(BaseModel):
    """The base class of the models of this module, of the chat, and of HTTP response bodies."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def from_source(cls, source: object, **fields: object) -> Self:
        """Return a model with `fields`.

        All other fields are copied from the attributes of `source` with the same names.
        """
        names = (name for name in cls.model_fields if name not in fields and hasattr(source, name))
        return cls.model_validate({name: getattr(source, name) for name in names} | fields)


class WorkingMemoryItem(ViewModel):
    """A memory of the working memory. `detail` is null if it was left out of the context; `reason` says why."""

    memory_id: UUID
    kind: str
    detail: str | None
    score: float
    tokens: int
    text: str
    reason: str


class WorkingMemoryResponse(ViewModel):
    """A context built from the working memory, with the memories in it and those left out."""

    profile: str
    text: str
    tokens: int
    limit: int
    items: list[WorkingMemoryItem]
    omitted: list[WorkingMemoryItem]
