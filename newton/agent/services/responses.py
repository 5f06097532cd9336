"""Stored responses of the OpenAI Responses API: continue, store, return and delete them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.agent.loop.history_match import HistoryMatch, IncomingMessage, fingerprint_messages, to_log_line
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.dialogue import branches, log, response_store, sessions
from newton.dialogue.response_store import ResponseRecord, StoredResponse
from newton.errors import InputError, NotFoundError
from newton.ids import new_id
from newton.memory.memory import WriteContext

_BRANCH_SUFFIX = re.compile("~[0-9a-f]{8}$")


class PreviousResponse(NamedTuple):
    """The session of a response, its position in the session, and the last user message up to this position."""

    session_id: UUID
    position: int
    last_input: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseService:
    """Stored responses of one agent."""

    scope: AgentScope

    async def continue_from(
        self, previous_id: UUID, messages: Sequence[IncomingMessage], *, response_id: UUID | None
    ) -> HistoryMatch:
        """Return the session in which these messages continue a stored response, and the messages to append to it.

        It is the session of that response; or a branch of it, if the session has later messages, if another response
        continues it already, or without a `response_id`. The session is reserved for the response `response_id`. Raises
        InputError if there is no response `previous_id`.
        """
        async with self.scope.write("user") as (tx, ctx):
            previous = await self._find_previous(tx, previous_id)
            session_id = await self._continue_or_branch(tx, previous, is_stored=response_id is not None, ctx=ctx)
            if response_id:
                ids = {"previous_id": previous_id, "session_id": session_id}
                await response_store.reserve(tx, response_id, **ids, agent_id=ctx.agent_id, now=ctx.now)
            refs = fingerprint_messages(messages, previous=previous.ref)
            lines = [to_log_line(message, ref, ctx.now) for message, ref in zip(messages, refs, strict=True)]
            lines = await sessions.detach_results(tx, lines, session_id=session_id, agent_id=ctx.agent_id)
            last_input = await response_store.get_last_input(
                tx, session_id=previous.session_id, position=previous.position, agent_id=ctx.agent_id
            )
        return HistoryMatch(session_id=session_id, new_messages=lines, fingerprints=refs, last_input=last_input)

    async def find_previous(self, previous_id: UUID) -> PreviousResponse:
        """Return where a response is in its session, without continuing it.

        Raises InputError if the response is not stored.
        """
        async with self.scope.transaction() as tx:
            previous = await self._find_previous(tx, previous_id)
            last_input = await response_store.get_last_input(
                tx, session_id=previous.session_id, position=previous.position, agent_id=self.scope.agent_id
            )
        return PreviousResponse(previous.session_id, previous.position, last_input)

    async def _find_previous(self, tx: Tx, previous_id: UUID) -> StoredResponse:
        previous = (await response_store.find(tx, [previous_id], agent_id=self.scope.agent_id)).get(previous_id)
        if previous is None:
            raise InputError(
                f"The response {previous_id} to continue is not stored.",
                hint="Send the whole conversation in `input`.",
                param="previous_response_id",
            )
        return previous

    async def _continue_or_branch(
        self, tx: Tx, previous: StoredResponse, *, is_stored: bool, ctx: WriteContext
    ) -> UUID:
        """Return the session of a response, or a new branch of it if the session cannot be continued from there."""
        session_id, position = previous.session_id, previous.position
        await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
        is_last = position == await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=session_id)
        if is_stored and is_last:
            previous_id = previous.record.response_id
            # Of requests that continue one response at the same time, only the first may append to its session.
            if not await response_store.is_continued(tx, previous_id, session_id=session_id, agent_id=ctx.agent_id):
                return session_id
        ref = await sessions.get_ref(tx, agent_id=ctx.agent_id, session_id=session_id)
        new_ref = f"{_BRANCH_SUFFIX.sub('', ref)}~{new_id().hex[-8:]}"
        branch_id = await branches.create_branch(tx, new_ref, parent_id=session_id, from_position=position, ctx=ctx)
        self.scope.publish("session.branched", {"session_id": str(branch_id), "parent_id": str(session_id)})
        return branch_id

    async def store(self, record: ResponseRecord, message_refs: Sequence[str], *, session_id: UUID) -> None:
        """Store the response of a completed turn. `message_refs` are the ids of its input and reply messages."""
        async with self.scope.transaction() as tx:
            await response_store.store(tx, record, message_refs, session_id=session_id, agent_id=self.scope.agent_id)

    async def find(self, response_ids: Sequence[UUID]) -> dict[UUID, StoredResponse]:
        """Return the stored responses with these ids, by id. An unknown id is left out."""
        if not response_ids:
            return {}
        async with self.scope.transaction() as tx:
            return await response_store.find(tx, response_ids, agent_id=self.scope.agent_id)

    async def get(self, response_id: UUID) -> StoredResponse:
        """Return a stored response. Raises NotFoundError if there is none with this id."""
        response = (await self.find([response_id])).get(response_id)
        if response is None:
            raise _not_found()
        return response

    async def delete(self, response_id: UUID) -> None:
        """Delete a stored response; its messages stay in the session. Raises NotFoundError if there is none."""
        async with self.scope.transaction() as tx:
            if not await response_store.delete(tx, response_id, agent_id=self.scope.agent_id):
                raise _not_found()


def _not_found() -> NotFoundError:
    hint = "The response was deleted, was requested with `store: false`, or belongs to another agent."
    return NotFoundError("There is no stored response with this id.", hint=hint)
