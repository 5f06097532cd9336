"""The input for which a context is built, and the call that builds it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText, Name, Ref, Timestamp
from newton.agent.inputs import ToolInput
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import (
    MAX_CONTEXT_TOKENS,
    NO_OVERRIDES,
    ContextBuildRequest,
    ContextFilters,
    ContextOverrides,
    SentMessages,
    TaskScope,
)
from newton.content.frames import get_frame
from newton.deadline import RequestDeadline
from newton.dialogue import sessions
from newton.errors import InputError, NotFoundError
from newton.memory.lookup import resolve_id
from newton.memory.memory import Kind
from newton.operations.fields import MAX_ID_CHARS, CommandOption

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


class ContextInput(ToolInput):
    """The input for which to build a context, and filters on the memories in it."""

    input: CleanText = Field(
        description="The message of the person, or the task, for which the context is built.",
        examples=["The staging server does not answer, what is wrong?"],
    )
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=MAX_CONTEXT_TOKENS,
        description="Maximum tokens of the context. Default: a size that suits the input. Only relevant memories are"
        " included.",
    )
    frame: Name | None = Field(
        None, description="The kind of task (frame), e.g. debug or planning. If omitted, it is chosen from the input."
    )
    fill: bool = Field(
        default=False,
        description="Whether to use all of `max_tokens`: less relevant memories fill the tokens that are left.",
    )
    session: Ref | None = Field(
        None,
        description="The session (conversation) to which the input belongs; memories from sessions of its folder are"
        " preferred. The folder is the name up to the first slash. For a model, the default is that of the connection.",
        examples=["planning"],
    )
    omit_session_messages: bool = Field(
        default=False, description="Leave out the messages of the session, for a caller that has them already."
    )
    task: int | Literal["current"] | None = Field(
        None,
        description="Only memories of this task of the session and of its subtasks: its number, or `current`. Default:"
        " memories of the current task are preferred.",
        examples=["current"],
    )
    profile: Name | None = Field(None, description="The name of the profile that scores the memories.")
    overrides: Annotated[ContextOverrides | None, CommandOption("override")] = Field(
        None,
        description="Values that replace those of the profile (`weights`, `reach`) and of the frame (`budget`) for this"
        " context. What is left out stays. On the command line, each is an assignment such as weights.recency=0.4.",
        examples=[{"weights": {"recency": 0.4}, "reach": {"depth": 3, "failures": False}}],
    )
    as_of: Timestamp | None = Field(None, description="Build the context as of this time in the past.")
    since: Timestamp | None = Field(None, description="Only memories of what occurred at or after this time.")
    until: Timestamp | None = Field(None, description="Only memories of what occurred before this time.")
    kinds: list[Kind] = Field([], description="Include only memories of these kinds.", examples=[["fact", "decision"]])
    event_types: list[Name] = Field([], description="Of the events, include only those of these types.")
    entity_types: list[Name] = Field([], description="Of the people and things, include only those of these types.")
    exclude: list[Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]] = Field(
        [], max_length=200, description="The ids of memories to leave out."
    )
    additional: CleanText | None = Field(None, description="Additional text to include in the context.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCall:
    """A call that builds a context (text from memory for an input) for a caller.

    With `requires_session`, an unknown session is an error; otherwise the context is built without a session, for a
    client that asks for a context before it stores its first message. With `item_ids`, each line has the id of its
    memory. Without a `deadline`, the call has the default time.
    """

    caller: "OperationCaller"
    item_ids: bool
    requires_session: bool = True
    deadline: RequestDeadline | None = None

    async def build(self, query: ContextInput) -> Bundle:
        """Build and return the context. Unless it is one of the past, record that its memories were used.

        Raises NotFoundError for an unknown frame, profile, memory or, if required, session, and TimeoutExceededError at
        the deadline, unless the deadline accepts a partial result.
        """
        deadline = self.deadline or RequestDeadline.after()
        if deadline.accepts_partial:
            return await self._build(query, deadline)
        return await deadline.run(self._build(query, deadline))

    async def _build(self, query: ContextInput, deadline: RequestDeadline) -> Bundle:
        newton = self.caller.newton
        request = replace(await self._to_request(query), deadline=deadline)
        is_present = query.as_of is None
        bundle = await newton.context_builder.build(request, records_access=is_present)
        if is_present:
            memory_ids = [item.memory_id for item in bundle.items]
            await newton.session_use(self.caller.origin).for_session(request.session_id).record(memory_ids)
        return bundle

    async def _to_request(self, query: ContextInput) -> ContextBuildRequest:
        newton, settings = self.caller.newton, self.caller.newton.settings
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
            overrides=query.overrides or NO_OVERRIDES,
            session_id=session_id,
            related_sessions=related,
            sent_messages=sent if query.omit_session_messages else None,
            as_of=query.as_of,
            filters=await self._to_filters(query, session_id),
            additional=query.additional,
            item_ids=self.item_ids,
        )

    async def _to_filters(self, query: ContextInput, session_id: UUID | None) -> ContextFilters:
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
        async with self.caller.newton.scope.transaction() as tx:
            agent_id = self.caller.newton.scope.agent_id
            return [_parse_id(ref) or await resolve_id(tx, ref, agent_id=agent_id) for ref in refs]

    async def _find_task(self, task: int | str, session_id: UUID | None) -> TaskScope:
        if session_id is None:
            raise InputError("A task belongs to a session.", hint="Name an existing session with the task.")
        tasks = self.caller.newton.tasks(self.caller.origin).for_session(session_id)
        tree = await tasks.tree()
        found = tree.require_current() if isinstance(task, str) else tree.find(task)
        return await tasks.load_scope(found, tree)

    async def _find_sessions(self, name: str | None) -> tuple[UUID | None, Sequence[UUID]]:
        """Return the id of the named session and the ids of the sessions in its folder; None and () without one."""
        if name is None:
            return None, ()
        agent_id = self.caller.newton.scope.agent_id
        async with self.caller.newton.scope.transaction() as tx:
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
