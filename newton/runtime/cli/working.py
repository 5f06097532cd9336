"""`newton working`: what a session has at hand, and a context of it."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from newton.agent.working import DEFAULT, Figures
from newton.cognition.bundle import briefly
from newton.cognition.score import FEATURES, contributions
from newton.cognition.working import Assembled, Chosen
from newton.content.profiles import Profile
from newton.errors import InputError
from newton.memory.lookup import short
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, session_name, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened


async def working(
    *,
    session: Annotated[str | None, Parameter(help="Of which session; without it, of the last at work.")] = None,
    strategy: Annotated[str, Parameter(help="How to choose: the name of a profile.")] = DEFAULT,
    max_tokens: Annotated[int | None, Parameter(help="The most tokens; without it, all that fits.")] = None,
    decay_hours: Annotated[float | None, Parameter(help="The time constant of the strategy's decay.")] = None,
    why: Annotated[bool, Parameter(negative=(), help="Say why each memory is in or out.")] = False,
    stats: Annotated[bool, Parameter(negative=(), help="Show ages, and which strategies were used.")] = False,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Show what a session has at hand, as a context. Nothing is searched, and no model is asked.

    What was said, shown and read in a session is at hand, as much as working memory holds.

    Example: newton working --session planning --strategy important --max-tokens 500
    """
    if why and stats:
        raise InputError("--why and --stats are two questions.", hint="Ask one of them.")
    chosen, session = settings(agent), session_name(session)
    async with opened(chosen) as newton:
        memory = await newton.working(session)
        if stats:
            _print_figures(await memory.figures(), json=json)
            return
        made = await memory.create_context(strategy, max_tokens, decay_hours=decay_hours)
    if json:
        show.as_json(_plain(made, strategy))
    elif why:
        say("\n".join(_reasons(made)) or "Nothing is at hand.")
    else:
        say(made.text, end="")
        whole = len(made.items) + len(made.left_out)
        show.notice(f"\n{strategy}: {len(made.items)} of {whole} items, {made.tokens:,} of {made.limit:,} tokens")


def _print_figures(figures: Figures, *, json: bool) -> None:
    if json:
        used = [{**asdict(one), "last_at": one.last_at.isoformat()} for one in figures.strategies]
        show.as_json({**asdict(figures), "strategies": used})
        return
    say(f"{show.counted(figures.items, 'item')}, {figures.tokens:,} of {figures.capacity:,} tokens")
    say(f"hours since they came, in quarters:      {_listed(figures.hours_since_added)}")
    say(f"hours since they were used, in quarters: {_listed(figures.hours_since_accessed)}")
    for one in figures.strategies:
        age = f", mean age {one.hours / one.items:.2f} hours" if one.items else ""
        say(f"{one.strategy:<12}{show.counted(one.contexts, 'context')}, {show.counted(one.items, 'item')}{age}")


def _listed(hours: tuple[float, ...]) -> str:
    return " · ".join(f"{one:,.2f}" for one in hours) or "-"


def _plain(made: Assembled, strategy: str) -> dict[str, object]:
    return {
        "strategy": strategy,
        "profile": made.profile.name,
        "limit": made.limit,
        "tokens": made.tokens,
        "text": made.text,
        "items": [{**_verdict(c), "detail": c.detail, "tokens": c.tokens, "text": c.text} for c in made.items],
        "left_out": [_verdict(c) for c in made.left_out],
    }


def _verdict(chosen: Chosen) -> dict[str, object]:
    features = zip(FEATURES, chosen.scored.features, strict=True)
    return {
        "memory_id": str(chosen.memory_id),
        "kind": chosen.scored.found.kind,
        "score": round(chosen.scored.score, 6),
        "features": {name: round(value, 4) for name, value in features},
        "reason": chosen.reason,
    }


def _reasons(made: Assembled) -> list[str]:
    return [line for chosen in (*made.items, *made.left_out) for line in _reason(chosen, made.profile)]


def _reason(chosen: Chosen, profile: Profile) -> list[str]:
    sign = "×" if profile.combine == "product" and profile.expression is None else "+"
    parts = contributions(chosen.scored.features, profile).items()
    said = f" {sign} ".join(f"{name} {given:.4g}" for name, given in parts)
    verdict = f"in, as {chosen.detail}" if chosen.detail else "out"
    return [
        f"{chosen.scored.score:.4f}  {briefly(chosen.scored.found, chosen.text)}",
        f"        {short(chosen.memory_id)} {verdict} ({chosen.reason}): {said}",
    ]
