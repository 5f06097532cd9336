"""`newton remember` and `newton recall`."""

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from newton.agent.verbs import Remark
from newton.cognition.bundle import briefly
from newton.errors import InputError
from newton.memory.lookup import short
from newton.memory.memory import RECALLED, Kind, past
from newton.memory.recall import Found
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, Until, When, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened


async def remember(
    content: str,
    *,
    fact: Annotated[bool, Parameter(negative=(), help="It is a fact; so is what says nothing else.")] = False,
    episode: Annotated[str | None, Parameter(help="It is something lived through, with this title.")] = None,
    subject: Annotated[str | None, Parameter(help="Whom or what the fact is about.")] = None,
    attribute: Annotated[str | None, Parameter(help="What of the subject it tells, such as 'lives in'.")] = None,
    confidence: Annotated[float | None, Parameter(help="How sure it is, from 0 to 1.")] = None,
    importance: Annotated[float | None, Parameter(help="How much it matters, from 0 to 10.")] = None,
    at: Annotated[datetime | None, When, Parameter(help="When it became true: a day, a time with zone, words.")] = None,
    until: Annotated[datetime | None, Until, Parameter(help="When it ends, if that is known.")] = None,
    agent: Agent = None,
    json: AsJson = False,
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
    async with opened(settings(agent)) as newton:
        verbs, began = newton.verbs("cli"), newton.scope.now()
        if episode is not None:
            kept = await verbs.relive(content, title=episode, at=at)
        else:
            kept = await verbs.remember(
                Remark(
                    content=content,
                    subject=subject,
                    attribute=attribute,
                    confidence=confidence,
                    importance=importance,
                    at=at,
                    until=until,
                )
            )
        settled = await newton.upkeep("cli").settle()
        changed = await newton.curation("cli").changed(began)
    if json:
        show.as_json(
            {
                "result": kept.learnt,
                "memory_id": str(kept.memory_id),
                "changed": [
                    {"memory_id": str(step.memory_id), "event": step.event, "state": step.after, "micro": micro}
                    for step, micro in changed
                ],
                "embedder_down": settled.down,
            }
        )
        return
    say(show.kept(kept, changed))
    if settled.down:
        show.notice(f"(No vector yet, {settled.down}; it is found by its words until there is one.)")


async def recall(
    question: str,
    *,
    kind: Annotated[
        list[Kind] | None, Parameter(negative=(), help="Only these kinds; may be given more than once.")
    ] = None,
    limit: Annotated[int, Parameter(help="The most memories to show.")] = 10,
    quarantined: Annotated[bool, Parameter(negative=(), help="Also what tools and the web said.")] = False,
    as_of: Annotated[
        datetime | None, When, Parameter(help="What Newton knew at that time; not what was true then.")
    ] = None,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Show the memories most likely meant, best first, each with its evidence: what its meaning and its words say for
    it, 0 for nothing and about 1 for plain. In JSON, `relevance` is the part of the best one's.

    Example: newton recall "database decision" --kind fact --limit 5

    Parameters
    ----------
    question:
        What to look for.
    """
    async with opened(settings(agent)) as newton:
        found = await newton.verbs("cli").recall(
            question, kinds=kind or RECALLED, most=limit, quarantined=quarantined, as_of=as_of
        )
    if json:
        show.as_json({"found": [_plain(f) for f in found.found], "missing": dict(found.missing)})
        return
    for f in found.found:
        gone = past(f.kind, f.state)
        shown = briefly(f, f.summary)
        say(f"{short(f.memory_id)}  {f.evidence:.2f}  {f.kind:<9}  {shown}" + (f"  ({gone})" if gone else ""))
    if not found.found:
        say(f"No {' and no '.join(kind)} in memory is like that." if kind else "Nothing like that is in memory.")
    show.missing(found.missing)


def _plain(found: Found) -> dict[str, object]:
    return {
        "memory_id": str(found.memory_id),
        "kind": found.kind,
        "state": found.state,
        "text": found.summary,
        "evidence": round(found.evidence, 6),
        "relevance": round(found.relevance, 6),
        "cosine": round(found.similarity, 6),
        "lexical": round(found.lexical, 6),
        "occurred_at": found.occurred_at.isoformat(),
        "trust": found.trust,
        "ref": found.ref,
    }
