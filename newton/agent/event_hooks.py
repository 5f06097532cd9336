"""The hooks of a pack on the events of a session, and on its beginning and end."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.brain.pack_hooks import HookResult, HookRunner
from newton.content.packs import HookPoint, HookRelation
from newton.errors import NewtonError
from newton.heart.entities.entity_changes import RelationDeclaration, declare_relations
from newton.heart.events.event_store import NewEvent
from newton.heart.events.event_types import render_line


@dataclass(frozen=True, slots=True, kw_only=True)
class EventHooks:
    """Runs the hooks (scripts) of a pack when events of a session are stored, and when a session begins or ends.

    A hook that fails changes nothing, and an event reports it. Over HTTP, they run within the transaction of the
    request, at most until their deadlines.
    """

    scope: AgentScope
    hooks: HookRunner

    async def run_before_record(self, events: Sequence[NewEvent]) -> Sequence[NewEvent]:
        """Run the hooks that may drop events before these are stored; return the events that none drops."""
        if not self.hooks.has_hooks("before_record"):
            return events
        kept = list[NewEvent]()
        for event in events:
            results = await self._run("before_record", _describe(event))
            if not any(result.effect.drop for result in results):
                kept.append(event)
        return kept

    async def run_after_record(self, events: Sequence[NewEvent]) -> None:
        """Run the hooks on stored events, and store the relations that they extract, with the trust of the event."""
        if not self.hooks.has_hooks("after_record"):
            return
        for event in events:
            for result in await self._run("after_record", _describe(event)):
                if result.effect.relations:
                    await self._store_relations(event, result)

    async def run_for_session(self, point: HookPoint, session_id: UUID) -> None:
        """Run the hooks of one point, the beginning or the end of a session."""
        if self.hooks.has_hooks(point):
            await self._run(point, {"session": str(session_id)})

    async def _run(self, point: HookPoint, values: dict[str, object]) -> Sequence[HookResult]:
        results = await self.hooks.run(point, values)
        failed = [result for result in results if result.problem]
        await self._report([(result, result.problem or "") for result in failed])
        return results

    async def _store_relations(self, event: NewEvent, result: HookResult) -> None:
        try:
            async with self.scope.write() as (tx, ctx):
                trust = event.effective_trust(ctx)
            async with self.scope.write(trust) as (tx, ctx):
                declared = [_to_declaration(event, result, one) for one in result.effect.relations]
                await declare_relations(tx, declared, ctx=ctx)
        except NewtonError as error:
            await self._report([(result, error.what)])

    async def _report(self, failures: Sequence[tuple[HookResult, str]]) -> None:
        if failures:
            async with self.scope.transaction():
                for result, problem in failures:
                    payload = {"hook": result.name, "point": result.point, "problem": problem}
                    self.scope.publish("hook.failed", payload)


def _describe(event: NewEvent) -> dict[str, object]:
    return {"type": event.event.type, "text": render_line(event.event)}


def _to_declaration(event: NewEvent, result: HookResult, relation: HookRelation) -> RelationDeclaration:
    ref = f"{event.ref} {result.name} {relation.source} {relation.type} {relation.target}"
    return RelationDeclaration(ref=ref, source=relation.source, type=relation.type, target=relation.target)
