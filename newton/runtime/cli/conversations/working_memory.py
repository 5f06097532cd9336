"""Command `newton working-memory`: the memories that a session stored, showed or read, as a context."""

from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from newton.agent.services.working_memory import DEFAULT_STRATEGY, WorkingSetStats
from newton.cognition.assembly.scored_candidate import ScoredCandidate, format_list_line
from newton.cognition.assembly.working_context import WorkingContext
from newton.cognition.scoring.score import FEATURE_NAMES, compute_contributions
from newton.cognition.working_set import ProfileStats
from newton.content.profiles import Profile
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, check_session_name, load_settings
from newton.runtime.cli.printing import say


async def show_working_memory(
    *,
    session: Annotated[str | None, Parameter(help="Name of the session (default: the last active one).")] = None,
    profile: Annotated[
        str, Parameter(help="Profile (way of scoring memories) that selects the items.")
    ] = DEFAULT_STRATEGY,
    max_tokens: Annotated[
        int | None, Parameter(help="Maximum tokens of the output (default: the capacity of the working memory).")
    ] = None,
    decay_hours: Annotated[
        float | None, Parameter(help="Time constant of the profile's recency decay, in hours.")
    ] = None,
    why: Annotated[bool, Parameter(negative=(), help="Show why each memory is selected or not.")] = False,
    stats: Annotated[
        bool, Parameter(negative=(), help="Show the age of the items and the use of each profile.")
    ] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show the working memory of a session as a context, without a search or a model call.

    Working memory contains the memories that the session stored, showed or read, up to a maximum number of tokens.

    Example: newton working-memory --session planning --profile important --max-tokens 500
    """
    if why and stats:
        raise InputError("--why and --stats exclude each other.", hint="Give --why or --stats.")
    settings, session = load_settings(agent), check_session_name(session)
    async with open_agent(settings) as newton:
        memory = await newton.working_memory(session)
        if stats:
            _print_stats(await memory.get_stats(), json=json)
            return
        context = await memory.create_context(profile, max_tokens, decay_hours=decay_hours)
    if json:
        formatting.print_json(_context_to_json(context))
    elif why:
        say("\n".join(_format_reasons(context)) or "The working memory is empty.")
    else:
        say(context.text, end="")
        items = f"{len(context.items)} of {len(context.items) + len(context.left_out)} items"
        formatting.print_notice(f"\n{profile}: {items}, {context.tokens:,} of {context.limit:,} tokens")


def _print_stats(stats: WorkingSetStats, *, json: bool) -> None:
    if json:
        fields: dict[str, Any] = asdict(stats)
        del fields["strategies"]
        formatting.print_json({**fields, "profiles": list(map(_profile_stats_to_json, stats.strategies))})
        return
    say(f"{formatting.pluralize(stats.items, 'item')}, {stats.tokens:,} of {stats.capacity:,} tokens")
    say(f"hours since the items were added, quartiles: {_format_hours(stats.hours_since_added)}")
    say(f"hours since they were last used, quartiles: {_format_hours(stats.hours_since_accessed)}")
    for one in stats.strategies:
        age = f", mean age {one.hours / one.items:.2f} hours" if one.items else ""
        contexts, items = formatting.pluralize(one.contexts, "context"), formatting.pluralize(one.items, "item")
        say(f"{one.strategy:<12}{contexts}, {items}{age}")


def _profile_stats_to_json(stats: ProfileStats) -> dict[str, object]:
    return {
        "profile": stats.strategy,
        "contexts": stats.contexts,
        "items": stats.items,
        "tokens": stats.tokens,
        "total_age_hours": stats.hours,
        "last_used_at": stats.last_at.isoformat(),
    }


def _format_hours(hours: tuple[float, ...]) -> str:
    return " · ".join(f"{one:,.2f}" for one in hours) or "-"


def _context_to_json(context: WorkingContext) -> dict[str, object]:
    return {
        "profile": context.profile.name,
        "limit": context.limit,
        "tokens": context.tokens,
        "text": context.text,
        "items": [
            {**_selection_to_json(c), "detail": c.detail, "tokens": c.tokens, "text": c.text} for c in context.items
        ],
        "omitted": [_selection_to_json(c) for c in context.left_out],
    }


def _selection_to_json(selection: ScoredCandidate) -> dict[str, object]:
    features = zip(FEATURE_NAMES, selection.scored.features, strict=True)
    return {
        "memory_id": str(selection.memory_id),
        "kind": selection.scored.found.kind,
        "score": round(selection.scored.score, 6),
        "features": {name: round(value, 4) for name, value in features},
        "reason": selection.reason,
    }


def _format_reasons(context: WorkingContext) -> list[str]:
    return [line for item in (*context.items, *context.left_out) for line in _format_reason(item, context.profile)]


def _format_reason(selection: ScoredCandidate, profile: Profile) -> list[str]:
    sign = "×" if profile.combine == "product" and profile.expression is None else "+"
    parts = compute_contributions(selection.scored.features, profile).items()
    score = f" {sign} ".join(f"{name} {value:.4g}" for name, value in parts)
    verdict = f"selected, as {selection.detail}" if selection.detail else "left out"
    return [
        f"{selection.scored.score:.4f}  {format_list_line(selection.scored.found, selection.text)}",
        f"        {short_id(selection.memory_id)} {verdict} ({selection.reason}): {score}",
    ]
