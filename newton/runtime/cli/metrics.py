"""`newton metrics`: how well contexts serve, beside what is aimed at."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.cognition.metrics import Figure, Group, Metrics
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened

# What helps when a target is missed, on which side.
ADVICE: Mapping[tuple[str, str], str] = {
    ("context relevance", "low"): "What has a quarter of the best one's evidence is loaded (lines: half of its"
    " relevance), so that few answers are lost. A profile of your own (NEWTON_PROFILES_DIR) with a higher `floor` and"
    " `near` raises this figure, and loses some; less room does not.",
    ("budget utilisation", "low"): "Inputs are allotted more than memory has to say about them: lower"
    " NEWTON_CONTEXT_TOKENS, or tell more (`newton remember`, `newton ingest`).",
    ("budget utilisation", "high"): "Contexts are full, and something is left out: raise NEWTON_CONTEXT_TOKENS.",
    ("refresh rate", "high"): "Contexts change at most turns: give one conversation to one topic (`/frame` holds a"
    " frame), and begin another with `newton chat`.",
    ("recall precision", "low"): "Replies leave most items alone: forget or retract what is of no use, or give less"
    " room (NEWTON_CONTEXT_TOKENS).",
    ("cold start, p95", "high"): "Contexts are slow to make: `newton bench context` tells which part, `newton doctor`"
    " what is wrong; NEWTON_SOURCE_SECONDS is the deadline of each source.",
    ("facts confirmed", "low"): "Few facts were told again: `newton confirm` what is so, and `newton jobs run"
    " lifecycle` joins what says the same in other words.",
}


async def metrics(
    *,
    days: Annotated[int, Parameter(help="How many days, up to now.")] = 7,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Show how well contexts served in the last days: relevance, budget, refreshes, what replies used of them, speed.

    Each figure stands beside its target and the number of things it is computed from.

    Example: newton metrics --days 30
    """
    async with opened(settings(agent)) as newton:
        found = await newton.measuring().days(days)
    if json:
        show.as_json(plain(found))
    else:
        say("\n".join(text(found)))


def text(found: Metrics) -> Iterator[str]:
    """As a person reads it."""
    period = found.period
    yield f"{period.since:%Y-%m-%d} to {period.until:%Y-%m-%d} · {show.counted(len(period.turns), 'turn')}\n"
    yield f"{'figure':<23}{'value':>8}  {'target':<10}{'verdict':<9}from"
    for figure in found.figures:
        yield (
            f"{figure.name:<23}{_value(figure):>8}  {_target(figure):<10}{figure.verdict or '':<9}"
            f"{figure.n:,} {figure.of}"
        )
    for what, groups in (("frame", found.frames), ("profile", found.profiles), ("day", found.days)):
        yield from _table(what, groups, found)
    advice = [f"{figure.name}: {said}" for figure in found.figures if (said := _advice(figure))]
    if advice:
        yield "\nWhat may help"
        yield from (f"- {one}" for one in advice)


def plain(found: Metrics) -> dict[str, object]:
    """As a program reads it."""
    period = found.period
    return {
        "since": period.since.isoformat(),
        "until": period.until.isoformat(),
        "turns": len(period.turns),
        "figures": [_plain(figure) | {"advice": _advice(figure)} for figure in found.figures],
        "frames": [_group(group) for group in found.frames],
        "profiles": [_group(group) for group in found.profiles],
        "days": [_group(group) for group in found.days],
        "memories": {str(day): dict(kinds) for day, kinds in period.made.items()},
    }


def _table(what: str, groups: Sequence[Group], found: Metrics) -> Iterator[str]:
    if not groups:
        return
    by_day = what == "day"
    head = f"\n{f'by {what}':<23}{'turns':>8}{'relevance':>12}{'budget':>10}{'used':>10}{'refreshed':>12}"
    yield head + (f"{'memories':>11}" if by_day else "")
    made = {str(day): sum(kinds.values()) for day, kinds in found.period.made.items()}
    for group in groups:
        row = f"{group.name:<23}{group.turns:>8}{_value(group.relevance):>12}{_value(group.utilisation):>10}"
        row += f"{_value(group.precision):>10}{_value(group.refresh):>12}"
        yield row + (f"{made.get(group.name, 0):>11}" if by_day else "")


def _value(figure: Figure) -> str:
    """
    >>> _value(Figure(name="", value=0.456, n=1, of="")), _value(Figure(name="", value=12.3, n=1, of="", unit="ms"))
    ('46 %', '12 ms')
    """
    if figure.value is None:
        return "–"
    match figure.unit:
        case "share":
            return f"{figure.value:.0%}".replace("%", " %")
        case "score":
            return f"{figure.value:.2f}"
        case "ms":
            return f"{figure.value:,.0f} ms"
        case "count":
            return f"{figure.value:,.1f}"


def _target(figure: Figure) -> str:
    if (target := figure.target) is None:
        return ""
    scale, unit = {"share": (100, " %"), "ms": (1, " ms")}.get(figure.unit, (1, ""))
    above, below = (None if end is None else f"{end * scale:g}" for end in target)
    if above and below:
        return f"{above}-{below}{unit}"
    return f"> {above}{unit}" if above else f"< {below}{unit}"


def _advice(figure: Figure) -> str | None:
    return ADVICE.get((figure.name, figure.verdict or ""))


def _plain(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "value": None if figure.value is None else round(figure.value, 4),
        "unit": figure.unit,
        "target": figure.target._asdict() if figure.target else None,
        "n": figure.n,
        "of": figure.of,
        "verdict": figure.verdict,
    }


def _group(group: Group) -> dict[str, object]:
    figures = (group.relevance, group.utilisation, group.precision, group.refresh)
    return {"name": group.name, "turns": group.turns, "figures": [_plain(figure) for figure in figures]}
