"""`newton working-memory`: what a session has at hand, and a context of it."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from newton.agent.services.working_memory import DEFAULT_STRATEGY, WorkingSetStats
from newton.cognition.assembly.scored_candidate import ScoredCandidate, format_list_line
from newton.cognition.scoring.score import FEATURE_NAMES, compute_contributions
from newton.cognition.working_set.assembly import WorkingContext
from newton.content.profiles import Profile
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, check_session_name, load_settings
from newton.runtime.cli.printing import say


async def show_working_memory(
    *,
    session: Annotated[str | None, Parameter(help="Of which session; without it, of the last at work.")] = None,
    strategy: Annotated[str, Parameter(help="How to choose: the name of a profile.")] = DEFAULT_STRATEGY,
    max_tokens: Annotated[int | None, Parameter(help="The most tokens; without it, all that fits.")] = None,
    decay_hours: Annotated[float | None, Parameter(help="The time constant of the strategy's decay.")] = None,
    why: Annotated[bool, Parameter(negative=(), help="Say why each memory is in or out.")] = False,
    stats: Annotated[bool, Parameter(negative=(), help="Show ages, and which strategies were used.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a session has at hand, as a context. Nothing is searched, and no model is asked.

    What was said, shown and read in a session is at hand, as much as working memory holds.

    Example: newton working-memory --session planning --strategy important --max-tokens 500
    """
    if why and stats:
        raise InputError("--why and --stats are two questions.", hint="Ask one of them.")
    chosen, session = load_settings(agent), check_session_name(session)
    async with open_newton(chosen) as newton:
        memory = await newton.working_memory(session)
        if stats:
            _print_stats(await memory.get_stats(), json=json)
            return
        made = await memory.create_context(strategy, max_tokens, decay_hours=decay_hours)
    if json:
        formatting.print_json(_context_to_json(made, strategy))
    elif why:
        say("\n".join(_format_reasons(made)) or "Nothing is at hand.")
    else:
        say(made.text, end="")
        whole = len(made.items) + len(made.left_out)
        formatting.print_notice(
            f"\n{strategy}: {len(made.items)} of {whole} items, {made.tokens:,} of {made.limit:,} tokens"
        )


def _print_stats(stats: WorkingSetStats, *, json: bool) -> None:
    if json:
        used = [{**asdict(one), "last_at": one.last_at.isoformat()} for one in stats.strategies]
        formatting.print_json({**asdict(stats), "strategies": used})
        return
    say(f"{formatting.pluralize(stats.items, 'item')}, {stats.tokens:,} of {stats.capacity:,} tokens")
    say(f"hours since they came, in quarters:      {_format_hours(stats.hours_since_added)}")
    say(f"hours since they were used, in quarters: {_format_hours(stats.hours_since_accessed)}")
    for one in stats.strategies:
        age = f", mean age {one.hours / one.items:.2f} hours" if one.items else ""
        say(
            f"{one.strategy:<12}{formatting.pluralize(one.contexts, 'context')}, "
            f"{formatting.pluralize(one.items, 'item')}{age}"
        )


def _format_hours(hours: tuple[float, ...]) -> str:
    return " · ".join(f"{one:,.2f}" for one in hours) or "-"


def _context_to_json(context: WorkingContext, strategy: str) -> dict[str, object]:
    return {
        "strategy": strategy,
        "profile": context.profile.name,
        "limit": context.limit,
        "tokens": context.tokens,
        "text": context.text,
        "items": [
            {**_selection_to_json(c), "detail": c.detail, "tokens": c.tokens, "text": c.text} for c in context.items
        ],
        "left_out": [_selection_to_json(c) for c in context.left_out],
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
    return [line for chosen in (*context.items, *context.left_out) for line in _format_reason(chosen, context.profile)]


def _format_reason(selection: ScoredCandidate, profile: Profile) -> list[str]:
    sign = "×" if profile.combine == "product" and profile.expression is None else "+"
    parts = compute_contributions(selection.scored.features, profile).items()
    said = f" {sign} ".join(f"{name} {given:.4g}" for name, given in parts)
    verdict = f"in, as {selection.detail}" if selection.detail else "out"
    return [
        f"{selection.scored.score:.4f}  {format_list_line(selection.scored.found, selection.text)}",
        f"        {short_id(selection.memory_id)} {verdict} ({selection.reason}): {said}",
    ]
