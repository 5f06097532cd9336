"""Requests for contexts, as HTTP and the tools take them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from newton.agent.context_inputs import FilteredContextInput
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest, ContextFilters, SentMessages, TaskScope
from newton.content.frames import get_frame
from newton.deadline import RequestDeadline
from newton.dialogue import sessions
from newton.errors import InputError, NotFoundError
from newton.memory.lookup import resolve_id
from newton.runtime.wiring import AgentServices


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCall:
    """A call that builds a context (text from memory for an input) for the interface `origin`.

    With `requires_session`, an unknown session is an error; otherwise the context is built without a session, for a
    client that asks for a context before it stores its first message. With `item_ids`, each line has the id of its
    memory. Without a `deadline`, the call has the default time.
    """

    newton: AgentServices
    origin: str
    item_ids: bool
    requires_session: bool = True
    deadline: RequestDeadline | None = None

    async def build(self, query: FilteredContextInput) -> Bundle:
        """Build and return the context. Unless it is one of the past, record that its memories were used.

        Raises NotFoundError for an unknown frame, profile, memory or, if required, session, and TimeoutExceededError at
        the deadline, unless the deadline accepts a partial result.
        """
        deadline = self.deadline or RequestDeadline.after()
        if deadline.accepts_partial:
            return await self._build(query, deadline)
        return await deadline.run(self._build(query, deadline))

    async def _build(self, query: FilteredContextInput, deadline: RequestDeadline) -> Bundle:
        newton = self.newton
        request = replace(await self._to_request(query), deadline=deadline)
        is_present = query.as_of is None
        bundle = await newton.context_builder.build(request, records_access=is_present)
        if is_present:
            memory_ids = [item.memory_id for item in bundle.items]
            await newton.session_use(self.origin).for_session(request.session_id).record(memory_ids)
        return bundle

    async def _to_request(self, query: FilteredContextInput) -> ContextBuildRequest:
        newton, settings = self.newton, self.newton.settings
        if query.frame:
            get_frame(newton.frames, query.frame)
        if query.as_of is not None and query.as_of > newton.scope.now():
            raise InputError(f"{query.as_of.isoformat()} is in the future.", hint="Omit as_of for the present.")
        session_id, related = await self._find_sessions(query.session)
        sent = SentMessages(session_id=session_id, first_position=0, has_events=True) if session_id else None
        return ContextBuildRequest(
            agent_id=newton.scope.agent_id,
            input=query.input,
            tokens=settings.context_tokens if query.max_tokens is None else query.max_tokens,
            adaptive_budget=query.max_tokens is None,
            fill=query.fill,
            frame=query.frame,
            profile=query.profile or settings.profile,
            overrides=query.overrides,
            session_id=session_id,
            related_sessions=related,
            sent_messages=sent if query.omit_session_messages else None,
            as_of=query.as_of,
            filters=await self._to_filters(query, session_id),
            additional=query.additional,
            item_ids=self.item_ids,
        )

    async def _to_filters(self, query: FilteredContextInput, session_id: UUID | None) -> ContextFilters:
        return ContextFilters(
            since=query.since,
            until=query.until,
            kinds=frozenset(query.kinds),
            event_types=frozenset(query.event_types),
            entity_types=frozenset(query.entity_types),
            exclude=frozenset(await self._resolve_ids(query.exclude)),
            task=None if query.task is None else await self._find_task(query.task, session_id),
        )

    async def _resolve_ids(self, refs: Sequence[str]) -> list[UUID]:
        """Return the full ids. One that is whole is not looked up: nothing is lost if no memory has it."""
        async with self.newton.scope.transaction() as tx:
            agent_id = self.newton.scope.agent_id
            return [_parse_id(ref) or await resolve_id(tx, ref, agent_id=agent_id) for ref in refs]

    async def _find_task(self, task: int | str, session_id: UUID | None) -> TaskScope:
        if session_id is None:
            raise InputError("A task belongs to a session.", hint="Name an existing session with the task.")
        tasks = self.newton.tasks(self.origin).for_session(session_id)
        tree = await tasks.tree()
        found = tree.require_current() if isinstance(task, str) else tree.find(task)
        return await tasks.load_scope(found, tree)

    async def _find_sessions(self, name: str | None) -> tuple[UUID | None, Sequence[UUID]]:
        """Return the id of the named session and the ids of the sessions in its folder; None and () without one."""
        if name is None:
            return None, ()
        agent_id = self.newton.scope.agent_id
        async with self.newton.scope.transaction() as tx:
            try:
                session_id = await sessions.get_session_id(tx, agent_id=agent_id, ref=name)
            except NotFoundError:
                if self.requires_session:
                    raise
                return None, ()
            return session_id, await sessions.list_folder(tx, agent_id=agent_id, ref=name)


def _parse_id(ref: str) -> UUID | None:
    try:
        return UUID(ref)
    except ValueError:
        return None
