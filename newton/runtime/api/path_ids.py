"""Ids in request paths: either a whole id or its last digits."""

from typing import Annotated

from fastapi import Path
from pydantic import StringConstraints

from newton.memory.lookup import MIN_ID_DIGITS

MAX_ID_CHARS = 64

IdRef = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS)]
PathId = Annotated[
    IdRef, Path(description=f"The id, or at least its last {MIN_ID_DIGITS} digits.", examples=["3f9c2a71"])
]
