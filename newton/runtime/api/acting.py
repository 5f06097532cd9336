"""What changes something: the effect, the event that tells of it and the answer that is kept land together."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple
from uuid import UUID

from fastapi import Depends, Header, Request
from fastapi.responses import Response
from pydantic import BaseModel

from newton.db.pool import Joined, Tx
from newton.runtime.answers import kept
from newton.runtime.answers.kept import Answer, Asked
from newton.runtime.api.caller import Caller, Needs
from newton.runtime.events import telling
from newton.runtime.jobs import queue
from newton.runtime.wiring import Newton

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


class Done(NamedTuple):
    """What was done: the answer, which holds no words of a person, and the event that tells of it, if one does."""

    answer: BaseModel
    told: str | None = None
    about: Mapping[str, str | int | float | bool | None] = {}


Work = Callable[[Newton], Awaitable[Done]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """One request that changes something, for its caller."""

    caller: Caller
    request: Request
    asked: Asked | None
    status: int

    async def once(self, work: Work) -> Response:
        """Does it in one unit of work, with the answer and the event. The work may ask no model.

        Raises what the work raises, and for a key that came before, ConflictError or AtWorkError.
        """
        newton = self.caller.newton
        async with newton.db.work(newton.agent_id) as tx:
            now = newton.clock.now()
            if self.asked and (known := await kept.claim(tx, self.asked, now=now)):
                return _given(known, again=True)
            done = await work(replace(newton, db=Joined(tx, newton.agent_id)))
            answer = self._answer(done)
            if self.asked:
                await kept.keep(tx, self.asked, answer, now=now)
            await _tell(tx, newton, done)
        self._poke(done)
        return _given(answer)

    async def settled(self, work: Work) -> Response:
        """Does what takes several units of work, and is one effect however often it is done; then keeps the answer.

        Raises as `once` does.
        """
        newton = self.caller.newton
        if self.asked and (known := await self._known(self.asked)):
            return _given(known, again=True)
        done = await work(newton)
        answer = self._answer(done)
        async with newton.db.work(newton.agent_id) as tx:
            now = newton.clock.now()
            if self.asked and (known := await kept.claim(tx, self.asked, now=now)):
                return _given(known, again=True)
            if self.asked:
                await kept.keep(tx, self.asked, answer, now=now)
            await _tell(tx, newton, done)
        self._poke(done)
        return _given(answer)

    async def _known(self, asked: Asked) -> Answer | None:
        newton = self.caller.newton
        async with newton.db.work(newton.agent_id) as tx:
            return await kept.find(tx, asked, now=newton.clock.now())

    def _answer(self, done: Done) -> Answer:
        return Answer(self.status, done.answer.model_dump_json())

    def _poke(self, done: Done) -> None:
        if done.told:
            self.request.app.state.board.poke(self.caller.newton.agent_id)


async def _tell(tx: Tx, newton: Newton, done: Done) -> None:
    if done.told:
        agent_id, now = newton.agent_id, newton.clock.now()
        await telling.expire(tx, agent_id=agent_id, now=now)
        await telling.tell(tx, done.told, done.about, agent_id=agent_id, now=now)
        await queue.wake(tx, EMBED, agent_id=agent_id)  # what was written is found by words at once, by meaning soon


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
    asked = await _asked(request, caller.newton.agent_id, key)
    return Acting(caller=caller, request=request, asked=asked, status=request.scope["route"].status_code or 200)


Writing = Annotated[Acting, Depends(_writing)]
Ruling = Annotated[Acting, Depends(_ruling)]
