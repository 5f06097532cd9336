"""The data of a context that needs no search: what one transaction reads for a request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.gathered_data import NO_TASK, AlwaysOn, InputMatches, SessionContextData, TaskData
from newton.cognition.sources.parent_memories import merge_always_on
from newton.cognition.sources.person import read_person
from newton.cognition.sources.session_state import SessionState, read_session_state
from newton.cognition.sources.signals import EVENT_TYPES_BY_INTENT, classify_intent
from newton.content.profiles import GatherOptions
from newton.db.pool import Tx, visit_agent
from newton.dialogue import tasks
from newton.heart import censors, procedures
from newton.heart.entities import entity_lookup
from newton.heart.entities.entity_lookup import EntityQuery
from newton.heart.events import event_store
from newton.heart.events.event_store import EventQuery, RecentEvents
from newton.heart.identity import identity_store as identity
from newton.text.time_expressions import TimeRange


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRequest:
    """A context request with parameters that all sources need. `model_id` identifies the embedding model.

    `reach` limits the number of results, `hidden_ids` are memories that must not be found, and `time_ranges` the times
    that the input asks for. For a project, `parent_id` is the agent above it.
    """

    request: ContextBuildRequest
    now: datetime
    reach: GatherOptions = field(default_factory=GatherOptions)
    hidden_ids: Sequence[UUID] = ()
    time_ranges: Sequence[TimeRange] = ()
    model_id: UUID | None = None
    parent_id: UUID | None = None


async def read_always_on(tx: Tx, source_request: SourceRequest) -> AlwaysOn:
    """Return the identity and the censors, of a project with those above it."""
    agent_id, parent_id = source_request.request.agent_id, source_request.parent_id
    own = await _read_own_rules(tx, source_request, agent_id)
    if parent_id is None:
        return own
    async with visit_agent(tx, parent_id, home=agent_id):
        return merge_always_on(own, await _read_own_rules(tx, source_request, parent_id))


async def _read_own_rules(tx: Tx, source_request: SourceRequest, agent_id: UUID) -> AlwaysOn:
    moment = source_request.request.as_of
    if moment is None:
        in_force = await censors.list_in_force(tx, agent_id=agent_id, model_id=source_request.model_id)
    else:
        in_force = await censors.list_in_force_at(tx, agent_id=agent_id, moment=moment)
    return AlwaysOn(identity=await identity.read_identity(tx, agent_id=agent_id, moment=moment), censors=in_force)


async def read_input_matches(tx: Tx, source_request: SourceRequest) -> InputMatches:
    """Return the entities that the input names, the facts on its person, and the triggers of all procedures."""
    request = source_request.request
    query = EntityQuery(
        agent_id=request.agent_id,
        text=request.input,
        now=source_request.now,
        max_salient=source_request.reach.salient,
        max_depth=source_request.reach.depth,
        preferred_types=source_request.reach.entity_types,
        preferred_relation_types=source_request.reach.relation_types,
        moment=request.as_of,
        excluded_ids=source_request.hidden_ids,
    )
    triggers = await procedures.list_triggers(tx, agent_id=request.agent_id)
    return InputMatches(
        entity_matches=await entity_lookup.find_entities(tx, query),
        procedure_triggers=triggers,
        person=await read_person(tx, request, now=source_request.now),
    )


async def read_recent_events(tx: Tx, source_request: SourceRequest) -> RecentEvents:
    """Return the latest events of the session and of other sessions."""
    request, reach = source_request.request, source_request.reach
    assert request.session_id is not None, "recent events are read within a session only"
    helpful_types = EVENT_TYPES_BY_INTENT[classify_intent(request.input)]
    query = EventQuery(
        agent_id=request.agent_id,
        session_id=request.session_id,
        max_events=reach.events,
        max_sessions=reach.sessions,
        moment=request.as_of,
        excluded_ids=source_request.hidden_ids,
        preferred_types=list(dict.fromkeys((*helpful_types, *reach.event_types))),
        preferred_sessions=request.related_sessions,
    )
    return await event_store.find_recent(tx, query)


async def read_session_data(tx: Tx, source_request: SourceRequest) -> SessionContextData:
    """Return identity, censors, state and tasks of the session."""
    request, task = source_request.request, NO_TASK
    if request.session_id:
        key = {"agent_id": request.agent_id, "session_id": request.session_id}
        tree = await tasks.load_tree(tx, **key, moment=request.as_of)
        task = TaskData(tree.stack, ended_ranges=() if request.filters.task else tree.ended_ranges)
    data = SessionContextData(
        always_on=await read_always_on(tx, source_request),
        session_state=(await read_state(tx, source_request)).apply_filters(request.filters),
    )
    return data.with_task(task)


async def read_state(tx: Tx, source_request: SourceRequest) -> SessionState:
    """Return the state of the session."""
    return await read_session_state(tx, source_request.request, now=source_request.now)
