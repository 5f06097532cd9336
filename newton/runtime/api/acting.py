"""What changes something: the effect, the events that tell of it and the answer that is kept land together."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from pydantic import BaseModel

from newton.runtime.answers import kept
from newton.runtime.answers.kept import Answer, Asked
from newton.runtime.api.caller import Caller, Needs
from newton.runtime.jobs import queue
from newton.runtime.wiring import Newton

T = TypeVar("T")

JSON = "application/json"
AGAIN = "Idempotency-Replayed"
EMBED = "embed"

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="A name of yours for this one thing to be done. Sent again within a day, it is answered again and"
        " done once.",
        examples=["8f14e45f-ceea-467f-9d7e-2c1b8e9c1a55"],
    ),
]


Work = Callable[[Newton], Awaitable[BaseModel]]  # the answer, which holds no words of a person


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """One request that changes something, for its caller."""

    caller: Caller
    asked: Asked | None
    status: int

    async def once(self, work: Work) -> Response:
        """Does it in one unit of work, with its events and the answer. The work may ask no model.

        Raises what the work raises, and for a key that came before, ConflictError or AtWorkError.
        """
        newton = self.caller.newton
        async with newton.scope.transaction() as tx:
            now = newton.scope.now()
            if self.asked and (known := await kept.claim(tx, self.asked, now=now)):
                return _given(known, again=True)
            done = await work(newton.within(tx))
            answer = Answer(self.status, done.model_dump_json())
            if self.asked:
                await kept.keep(tx, self.asked, answer, now=now)
            await queue.wake(tx, EMBED, agent_id=newton.scope.agent_id)  # it is found by words at once, by meaning soon
        return _given(answer)

    async def after(
        self, think: Callable[[Newton], Awaitable[T]], work: Callable[[Newton, T], Awaitable[BaseModel]]
    ) -> Response:
        """The same for work that wants to know what may take a model to find out: that is thought of before, unless the
        answer is known already."""
        newton = self.caller.newton
        if self.asked and (known := await self._known(self.asked)):
            return _given(known, again=True)
        thought = await think(newton)
        return await self.once(lambda within: work(within, thought))

    async def _known(self, asked: Asked) -> Answer | None:
        newton = self.caller.newton
        async with newton.scope.transaction() as tx:
            return await kept.find(tx, asked, now=newton.scope.now())


def _given(answer: Answer, *, again: bool = False) -> Response:
    return Response(answer.text, answer.status, headers={AGAIN: "true"} if again else None, media_type=JSON)


async def _asked(request: Request, agent_id: UUID, key: str | None) -> Asked | None:
    if key is None:
        return None
    where = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    return Asked(agent_id, key, hashlib.sha256(where + await request.body()).digest())


async def _writing(request: Request, caller: Annotated[Caller, Depends(Needs("write"))], key: Key = None) -> Acting:
    return await _acting(request, caller, key)


async def _ruling(request: Request, caller: Annotated[Caller, Depends(Needs("admin"))], key: Key = None) -> Acting:
    return await _acting(request, caller, key)


async def _acting(request: Request, caller: Caller, key: str | None) -> Acting:
    asked = await _asked(request, caller.newton.scope.agent_id, key)
    return Acting(caller=caller, asked=asked, status=request.scope["route"].status_code or 200)


Writing = Annotated[Acting, Depends(_writing)]
Ruling = Annotated[Acting, Depends(_ruling)]
