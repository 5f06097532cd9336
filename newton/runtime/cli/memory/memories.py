"""Commands `newton remember` and `newton recall`: store and search memories."""

import shlex
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from newton.agent.services.memories import FactDraft
from newton.cognition.assembly.fact_labels import render_found
from newton.cognition.assembly.relevance_floor import format_probability
from newton.cognition.assembly.scored_candidate import format_list_line
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.memory.search_types import RecallResult, RetrievedMemory
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_index import load_commands
from newton.runtime.cli.options import (
    AgentOption,
    EndTime,
    JsonOption,
    KindsOption,
    LimitOption,
    StartTime,
    TimeoutOption,
    load_settings,
    start_deadline,
)
from newton.runtime.cli.printing import say


async def remember(
    content: Annotated[str, Parameter(help="Text to store.")],
    *,
    fact: Annotated[
        bool,
        Parameter(negative=(), help="Store the text as a fact (the default), even if it is the name of a command."),
    ] = False,
    episode: Annotated[str | None, Parameter(help="Store the text as an episode with this title.")] = None,
    subject: Annotated[str | None, Parameter(help="Person or thing that the fact is about.")] = None,
    attribute: Annotated[str | None, Parameter(help="Attribute of the subject, such as 'lives in'.")] = None,
    confidence: Annotated[float | None, Parameter(help="Probability from 0 to 1 that the fact is true.")] = None,
    importance: Annotated[float | None, Parameter(help="Importance from 0 to 10.")] = None,
    at: Annotated[
        datetime | None, StartTime, Parameter(help="When the fact became true, or the episode began: a day or a time.")
    ] = None,
    until: Annotated[datetime | None, EndTime, Parameter(help="When the fact stops being true, if known.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Store a fact or, with --episode TITLE, an episode (an experience). Repeating a fact confirms it.

    Example: newton remember --fact "We chose Postgres with pgvector over ChromaDB"
    """
    if fact and episode is not None:
        raise InputError("--fact and --episode exclude each other.", hint="Give --fact or --episode.")
    if not fact and episode is None:
        _reject_command_name(content.strip())
    async with open_agent(load_settings(agent), on_new_agent=formatting.print_new_agent) as newton:
        intake = newton.fact_intake("cli")
        if episode is not None:
            report = await intake.store_episode(content, title=episode, occurred_at=at)
        else:
            report = await intake.store(
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
    if json:
        formatting.print_json(
            {
                "status": report.result.status,
                "memory_id": str(report.result.memory_id),
                "replaced": list(map(formatting.mention_to_json, report.replaced)),
                "contested": list(map(formatting.mention_to_json, report.contested)),
                "redacted": report.result.redacted,
                "warning": report.warning,
                "embedder_error": report.embedder_error,
            }
        )
        return
    say(formatting.format_remember_report(report))
    formatting.print_censor_warning(report.warning)
    if report.embedder_error:
        formatting.print_notice(
            f"(The memory is not embedded yet: {report.embedder_error}. Search finds it by its words only.)"
        )


def _reject_command_name(content: str) -> None:
    """Raise InputError if a text is the name of a command, because the user probably wants to run the command."""
    known = load_commands()
    if content not in known and not any(content in one.commands for one in known.values()):
        return
    command = f"newton {content}" if content in known else "newton help"
    raise InputError(
        f"{content!r} is the name of a command, not a fact.",
        hint=f"Run `{command}`. To store the word, run `newton remember --fact {shlex.quote(content)}`.",
    )


async def recall(
    query: Annotated[str, Parameter(help="Text to search for.")],
    *,
    kind: KindsOption = None,
    limit: LimitOption = 10,
    include_quarantined: Annotated[
        bool, Parameter(negative=(), help="Also search unconfirmed text from tools and the web.")
    ] = False,
    min_relevance: Annotated[
        float | None, Parameter(help="Minimum probability from 0 to 1 that a memory answers; 0 shows the nearest ones.")
    ] = None,
    as_of: Annotated[datetime | None, StartTime, Parameter(help="Search the memory as it was at this time.")] = None,
    timeout: TimeoutOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Search the memories by meaning and words. Each result has the probability that it answers (-: not judged).

    Messages, facts and passages that hardly answer are left out. A memory of fewer than ten texts, or one with another
    embedding model, is not judged. In JSON, `evidence` is the score of the search, `relevance` its share of the best.

    Example: newton recall "database decision" --kind fact --limit 5
    """
    async with open_agent(load_settings(agent)) as newton:
        memories = newton.memories("cli").with_min_relevance(min_relevance).with_deadline(start_deadline(timeout))
        result = await memories.recall(
            query, kinds=kind or None, limit=limit, include_quarantined=include_quarantined, as_of=as_of
        )
    now = memories.scope.now()
    if json:
        items = [_memory_to_json(m, result, now) for m in result.memories]
        formatting.print_json({"items": items, "has_match": result.has_match, "missing": dict(result.missing)})
        return
    if result.memories and not result.has_match:
        say("Nothing matches well; these are the nearest memories.")
    for m in result.memories:
        probability = result.find_probability(m.memory_id)
        shown = "-" if probability is None else format_probability(probability)
        say(f"{short_id(m.memory_id)}  {shown:>5}  {m.kind:<9}  {render_found(m, format_list_line(m, m.summary), now)}")
    if not result.memories:
        say(f"No matching {' or '.join(kind)}." if kind else "No matching memory.")
        if memories.describe_nothing(result):
            say("Nothing known answers this. To see the nearest memories, add `--min-relevance 0`.")
    formatting.print_missing_sources(result.missing)


def _memory_to_json(memory: RetrievedMemory, result: RecallResult, now: datetime) -> dict[str, object]:
    return {
        "memory_id": str(memory.memory_id),
        "kind": memory.kind,
        "state": memory.state,
        "text": render_found(memory, memory.summary, now),
        "probability": result.find_probability(memory.memory_id),
        "evidence": round(memory.evidence_score, 6),
        "relevance": round(memory.relevance, 6),
        "cosine": round(memory.similarity, 6),
        "lexical": round(memory.lexical, 6),
        "occurred_at": memory.occurred_at.isoformat(),
        "trust": memory.trust,
        "ref": memory.ref,
    }
