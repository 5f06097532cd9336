"""Ids in request paths: either a whole id or its last digits."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path
from pydantic import StringConstraints

from newton.memory.lookup import FULL_ID_DIGITS, MIN_ID_DIGITS
from newton.memory.memory import Kind
from newton.runtime.api.auth import AuthenticatedCaller, ReadAccess
from newton.runtime.api.base_models import ORIGIN

MAX_ID_CHARS = 64

IdRef = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS)]
PathId = Annotated[
    IdRef, Path(description=f"The id, or at least its last {MIN_ID_DIGITS} digits.", examples=["3f9c2a71"])
]


async def resolve_memory_ref(caller: AuthenticatedCaller, ref: str, kind: Kind | None = None) -> UUID:
    """Return the id of the memory that `ref` names by its id or the last digits of the id.

    A whole id is returned even if no such memory exists, so that a repeated deletion succeeds. Raises InputError for an
    invalid `ref`, NotFoundError for an unknown one, and ConflictError if several ids match.
    """
    digits = ref.replace("-", "")
    if len(digits) == FULL_ID_DIGITS and digits.isascii() and digits.isalnum():
        try:
            return UUID(digits)
        except ValueError:
            pass
    return await caller.newton.curation(ORIGIN).resolve(ref, kind=kind)


async def _resolve_memory(memory_id: PathId, caller: ReadAccess) -> UUID:
    return await resolve_memory_ref(caller, memory_id)


MemoryId = Annotated[UUID, Depends(_resolve_memory)]
