"""`newton remember` and `newton recall`."""

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from newton.agent.services.memories import FactDraft
from newton.cognition.assembly.scored_candidate import format_list_line
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.memory.memory import RECALLABLE_KINDS, Kind, past_reason
from newton.memory.search_types import RetrievedMemory
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, EndTime, JsonOption, StartTime, load_settings
from newton.runtime.cli.printing import say


async def remember(
    content: str,
    *,
    fact: Annotated[bool, Parameter(negative=(), help="It is a fact; so is what says nothing else.")] = False,
    episode: Annotated[str | None, Parameter(help="It is something lived through, with this title.")] = None,
    subject: Annotated[str | None, Parameter(help="Whom or what the fact is about.")] = None,
    attribute: Annotated[str | None, Parameter(help="What of the subject it tells, such as 'lives in'.")] = None,
    confidence: Annotated[float | None, Parameter(help="How sure it is, from 0 to 1.")] = None,
    importance: Annotated[float | None, Parameter(help="How much it matters, from 0 to 10.")] = None,
    at: Annotated[
        datetime | None, StartTime, Parameter(help="When it became true: a day, a time with zone, words.")
    ] = None,
    until: Annotated[datetime | None, EndTime, Parameter(help="When it ends, if that is known.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Remember a fact, or an episode with --episode TITLE. Saying a fact again confirms it.

    Example: newton remember --fact "We chose Postgres with pgvector over ChromaDB"

    Parameters
    ----------
    content:
        What is to be remembered.
    """
    if fact and episode is not None:
        raise InputError("It cannot be a fact and an episode.", hint="Give --fact or --episode, not both.")
    async with open_newton(load_settings(agent)) as newton:
        verbs, began = newton.memories("cli"), newton.scope.now()
        if episode is not None:
            kept = await verbs.remember_episode(content, title=episode, occurred_at=at)
        else:
            kept = await verbs.remember(
                FactDraft(
                    content=content,
                    subject=subject,
                    attribute=attribute,
                    confidence=confidence,
                    importance=importance,
                    at=at,
                    until=until,
                )
            )
        settled = await newton.maintenance("cli").process_pending()
        changed = await newton.curation("cli").list_changes(began)
    if json:
        formatting.print_json(
            {
                "result": kept.status,
                "memory_id": str(kept.memory_id),
                "changed": [
                    {"memory_id": str(step.memory_id), "event": step.event, "state": step.to_state, "micro": micro}
                    for step, micro in changed
                ],
                "embedder_down": settled.stopped_by,
            }
        )
        return
    say(formatting.format_remember_result(kept, changed))
    if settled.stopped_by:
        formatting.print_notice(f"(No vector yet, {settled.stopped_by}; it is found by its words until there is one.)")


async def recall(
    question: str,
    *,
    kind: Annotated[
        list[Kind] | None, Parameter(negative=(), help="Only these kinds; may be given more than once.")
    ] = None,
    limit: Annotated[int, Parameter(help="The most memories to show.")] = 10,
    quarantined: Annotated[bool, Parameter(negative=(), help="Also what tools and the web said.")] = False,
    as_of: Annotated[
        datetime | None, StartTime, Parameter(help="What Newton knew at that time; not what was true then.")
    ] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show the memories most likely meant, best first, each with its evidence: what its meaning and its words say for
    it, 0 for nothing and about 1 for plain. In JSON, `relevance` is the part of the best one's.

    Example: newton recall "database decision" --kind fact --limit 5

    Parameters
    ----------
    question:
        What to look for.
    """
    async with open_newton(load_settings(agent)) as newton:
        found = await newton.memories("cli").recall(
            question, kinds=kind or RECALLABLE_KINDS, limit=limit, include_quarantined=quarantined, as_of=as_of
        )
    if json:
        formatting.print_json({"found": [_memory_to_json(f) for f in found.memories], "missing": dict(found.missing)})
        return
    for f in found.memories:
        gone = past_reason(f.kind, f.state)
        shown = format_list_line(f, f.summary)
        say(f"{short_id(f.memory_id)}  {f.evidence_score:.2f}  {f.kind:<9}  {shown}" + (f"  ({gone})" if gone else ""))
    if not found.memories:
        say(f"No {' and no '.join(kind)} in memory is like that." if kind else "Nothing like that is in memory.")
    formatting.print_missing_sources(found.missing)


def _memory_to_json(memory: RetrievedMemory) -> dict[str, object]:
    return {
        "memory_id": str(memory.memory_id),
        "kind": memory.kind,
        "state": memory.state,
        "text": memory.summary,
        "evidence": round(memory.evidence_score, 6),
        "relevance": round(memory.relevance, 6),
        "cosine": round(memory.similarity, 6),
        "lexical": round(memory.lexical, 6),
        "occurred_at": memory.occurred_at.isoformat(),
        "trust": memory.trust,
        "ref": memory.ref,
    }
