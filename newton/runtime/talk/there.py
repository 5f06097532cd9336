"""An agent behind a daemon, as a conversation needs it: nothing of it is in this process."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from pydantic import TypeAdapter

from newton import client as wire
from newton.agent.upkeep import AT_ONCE
from newton.agent.verbs import Kept
from newton.client import Client, Who, session_path
from newton.client.connection import understood
from newton.content.yamlfile import pick
from newton.dialogue.branches import Checkpoint
from newton.dialogue.compaction.events import KINDS, Event
from newton.dialogue.stack import Task, Tree
from newton.errors import NewtonError, NotFoundError
from newton.memory.hygiene import clean, ref
from newton.memory.transitions import Changed, Step
from newton.runtime.talk.partner import Work
from newton.runtime.talk.told import Explained, Turned, Wish

T = TypeVar("T")

TASKS = TypeAdapter(list[Task])
CHECKPOINTS = TypeAdapter(list[Checkpoint])
WISHES = TypeAdapter(list[Wish])


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """`who` is what the daemon said of whom the client speaks for; `tell` hears of compactions."""

    client: Client
    who: Who
    tell: Callable[[Event], None] = lambda event: None

    @property
    def agent(self) -> str:
        return self.who["agent"]

    @property
    def model(self) -> str | None:
        return self.who["model"]

    async def take(
        self, session: str, text: str, *, frame: str | None = None, whole: bool = False
    ) -> AsyncGenerator[str | Turned]:
        said = clean(text, what="message")
        asked = {"whole": whole} if frame is None else {"whole": whole, "frame": frame}
        async with aclosing(self.client.turn(session, said, **asked)) as steps:  # else the daemon would speak on
            async for step in steps:
                if step.type == "compaction":
                    if event := _event(step.about):
                        self.tell(event)
                elif (piece := _piece(step)) is not None:
                    yield piece

    async def settle(self, most: int | None = AT_ONCE) -> None:
        """A daemon sees to it by itself."""

    async def begin(self, session: str) -> None:
        await self.client.post("/v1/sessions", {"session": session})

    async def known(self, session: str) -> bool:
        try:
            await self.checkpoints(session)
        except NotFoundError:
            return False
        return True

    async def close(self, session: str) -> None:
        await self.client.close(session)

    async def frame(self, name: str) -> str:
        known = await self.client.get("/v1/frames")
        with understood():
            names = {one["name"]: one["name"] for one in known}
        return pick(names, name, "frame")

    async def why(self, bundle_id: UUID, which: str) -> Explained:
        told = await self.client.why(bundle_id, which)
        with understood():
            return Explained.model_validate(told)

    async def remember(self, text: str) -> tuple[Kept, Sequence[Changed]]:
        told = await self.client.remember(text)
        with understood():
            kept, at = Kept(told["learnt"], UUID(told["memory_id"])), told["at"]
        try:
            changed = await self.client.settle(at)
        except NewtonError:  # it is kept; what it changes in others follows by itself
            return kept, []
        with understood():
            return kept, [_changed(one) for one in changed]

    async def tasks(self, session: str) -> Work:
        return Worked(self.client, session)

    async def checkpoints(self, session: str) -> Sequence[Checkpoint]:
        return _read(CHECKPOINTS, await self.client.get(f"{session_path(session)}/checkpoints"))

    async def checkpoint(self, session: str, name: str) -> Checkpoint:
        called = ref(name, what="checkpoint")
        await self.client.post(f"{session_path(session)}/checkpoint", {"name": called})
        return next(one for one in await self.checkpoints(session) if one.name == called)

    async def branch(self, session: str, new: str, *, at: str | None = None) -> None:
        await self.client.post(f"{session_path(session)}/branch", {"session": new, "at": at})

    async def wishes(self) -> Sequence[Wish]:
        return _read(WISHES, await self.client.get("/v1/identity/proposals"))

    async def accept(self, tenet_id: UUID) -> Wish:
        known = {one.tenet_id: one for one in await self.wishes()}
        gone = await self.client.accept(tenet_id)  # it answers ids; what they say is known by now
        standing = [one for one in known[tenet_id].instead_of if str(one.tenet_id) in gone]
        return known[tenet_id].model_copy(update={"instead_of": standing})

    async def reject(self, tenet_id: UUID) -> None:
        await self.client.reject(tenet_id)


@dataclass(frozen=True, slots=True)
class Worked:
    """The tasks of one session."""

    client: Client
    session: str

    async def tree(self) -> Tree:
        return Tree(_read(TASKS, await self.client.get("/v1/tasks", {"session": self.session})))

    async def push(self, goal: str) -> object:
        return await self.client.push(goal, session=self.session)

    async def pop(self, result: str) -> object:
        return await self.client.pop(result, session=self.session)

    async def block(self, reason: str) -> object:
        return await self._post("block", reason=reason)

    async def resume(self, given: str) -> object:
        return await self._post("resume", number=(await self.tree()).named(given).number)

    async def fail(self, reason: str) -> object:
        return await self._post("fail", reason=reason)

    async def _post(self, act: str, **given: str | int) -> object:
        return await self.client.post(f"/v1/tasks/{act}", {"session": self.session, **given})


def _piece(step: wire.Step) -> str | Turned | None:
    """What another version of Newton says beside these is left out."""
    with understood():
        match step.type:
            case "piece":
                return str(step.about["text"])
            case "answer":
                return Turned.model_validate(step.about)
            case _:
                return None


def _event(told: dict[str, Any]) -> Event | None:
    kind = KINDS.get(told.pop("event", ""))
    with understood():
        return TypeAdapter(kind).validate_python(told) if kind else None


def _read(form: TypeAdapter[T], told: object) -> T:
    with understood():
        return form.validate_python(told)


def _changed(told: wire.Changed) -> Changed:
    step = Step(UUID(told["memory_id"]), told["event"], told["before"], told["after"], told["because"])
    return Changed(step, told["micro"])
