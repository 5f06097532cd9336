"""An agent in this process, as a conversation needs it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from uuid import UUID

from newton.agent.bearing import Bearing
from newton.agent.conversations import Conversations
from newton.agent.turn import Answer, Said, Turns
from newton.agent.upkeep import AT_ONCE
from newton.agent.verbs import Kept, Remark
from newton.content.frames import frame_named
from newton.dialogue.branches import Checkpoint
from newton.heart.identity import opposed
from newton.memory.hygiene import ref
from newton.memory.transitions import Changed
from newton.runtime.talk.partner import Work
from newton.runtime.talk.told import Explained, Turned, Wish, explained, told_line, turned, wish
from newton.runtime.wiring import Newton


@dataclass(slots=True, kw_only=True)
class Here:
    """`origin` names the door."""

    newton: Newton
    turns: Turns
    origin: str = "chat"

    @property
    def agent(self) -> str:
        return self.newton.settings.agent

    @property
    def model(self) -> str | None:
        return self.newton.settings.openai_model if self.turns.model else None

    async def take(
        self, session: str, text: str, *, frame: str | None = None, whole: bool = False
    ) -> AsyncGenerator[str | Turned]:
        said = Said(session_id=await self.newton.conversations(self.origin).begin(session), text=text, frame=frame)
        async with aclosing(self.turns.take(said)) as pieces:  # kept when nobody reads it any more, too
            async for piece in pieces:
                yield turned(piece, whole=whole) if isinstance(piece, Answer) else piece

    async def settle(self, most: int | None = AT_ONCE) -> None:
        await self.newton.upkeep(self.origin).settle(most)

    async def begin(self, session: str) -> None:
        await self.newton.conversations(self.origin).begin(session)

    async def known(self, session: str) -> bool:
        return await self._doors.known(session)

    async def close(self, session: str) -> None:
        await self.newton.conversations(self.origin).close(await self.newton.conversations(self.origin).begin(session))

    async def frame(self, name: str) -> str:
        return frame_named(self.newton.frames, name).name

    async def why(self, bundle_id: UUID, which: str) -> Explained:
        account = await self.newton.hindsight().why(str(bundle_id))
        return explained(account, account.picked(which))

    async def remember(self, text: str) -> tuple[Kept, Sequence[Changed]]:
        began = self.newton.scope.now()
        kept = await self.newton.verbs(self.origin).remember(Remark(content=text))
        await self.settle()
        return kept, await self.newton.curation(self.origin).changed(began)

    async def tasks(self, session: str) -> Work:
        return self.newton.tasks(self.origin).of(await self.newton.conversations(self.origin).begin(session))

    async def checkpoints(self, session: str) -> Sequence[Checkpoint]:
        return await self._doors.checkpoints(session)

    async def checkpoint(self, session: str, name: str) -> Checkpoint:
        return await self._doors.checkpoint(session, ref(name, what="checkpoint"))

    async def branch(self, session: str, new: str, *, at: str | None = None) -> None:
        await self._doors.branch(session, new, at=at)

    async def wishes(self) -> Sequence[Wish]:
        return await waiting(self.newton.bearing(self.origin))

    async def accept(self, tenet_id: UUID) -> Wish:
        return wish(await self.newton.bearing(self.origin).accept(str(tenet_id)))

    async def reject(self, tenet_id: UUID) -> None:
        await self.newton.bearing(self.origin).reject(str(tenet_id))

    @property
    def _doors(self) -> Conversations:
        return self.newton.conversations(self.origin)


async def waiting(bearing: Bearing) -> Sequence[Wish]:
    """What waits for a person's yes, and what stands against it now."""
    proposed, now = await bearing.proposals(), await bearing.identity()
    return [
        Wish(
            tenet_id=one.tenet_id,
            words=one.words or "",
            part=one.part,
            instead_of=[told_line(tenet) for tenet in opposed(now, one.words or "")],
        )
        for one in proposed
    ]
