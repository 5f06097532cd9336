"""`newton decide`: what speaks for and against a choice, then its record."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated, cast, get_args

from cyclopts import Parameter

from newton.agent.deciding import Decided, Deciding, Outlook
from newton.brain.choice import Choice, Reason, ReasonKind, Stakes
from newton.brain.quality import PARTS, score
from newton.clock import SystemClock
from newton.content.frames import frame_named
from newton.content.yamlfile import did_you_mean
from newton.errors import InputError
from newton.memory.lookup import short
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, When, moment, settings
from newton.runtime.cli.printing import say, visible
from newton.runtime.opening import opened

KINDS: tuple[str, ...] = get_args(ReasonKind)
REASON = f"Why, as KIND:TEXT; may be given often. Kinds: {', '.join(KINDS)}."


async def decide(
    description: str | None = None,
    *,
    confidence: Annotated[float | None, Parameter(help="How sure you are that it will succeed, from 0 to 1.")] = None,
    reason: Annotated[list[str] | None, Parameter(negative=(), help=REASON)] = None,
    alternative: Annotated[list[str] | None, Parameter(negative=(), help="What else was considered.")] = None,
    stakes: Annotated[Stakes | None, Parameter(help="How much hangs on it; medium, if the frame says nothing.")] = None,
    category: Annotated[str | None, Parameter(help="What it is about, such as architecture.")] = None,
    tag: Annotated[list[str] | None, Parameter(negative=(), help="A word to find it by.")] = None,
    context: Annotated[str | None, Parameter(help="The situation in which it is made.")] = None,
    expect: Annotated[str | None, Parameter(help="What should come of it.")] = None,
    look_again: Annotated[
        datetime | None, When, Parameter(help="When that should be known, such as 2026-12-01 or 'next month'.")
    ] = None,
    reviewed_by: Annotated[str | None, Parameter(help="Who else has looked at it before.")] = None,
    supersedes: Annotated[list[str] | None, Parameter(negative=(), help="The decision whose place it takes.")] = None,
    frame: Annotated[str | None, Parameter(help="Take stakes and category from this frame.")] = None,
    ref: Annotated[str | None, Parameter(help="Your own id of it: under the same one it is recorded once.")] = None,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only look; record nothing.")] = False,
    agent: Agent = None,
    json: AsJson = False,
) -> int:
    """Record a decision before it is carried out. Similar decisions, censors, guardrails and the base rate come first.

    In a terminal, without --confidence, it asks step by step.

    Example: newton decide "Use Redis for the cache" --confidence 0.8 --reason "analysis:reads outnumber writes"

    Parameters
    ----------
    description:
        What was chosen, in a line.
    """
    chosen = settings(agent)
    if (description is None or confidence is None) and not sys.stdin.isatty():
        missing = "description" if description is None else "confidence"
        raise InputError(f"The {missing} is missing.", hint='newton decide "WHAT" --confidence 0.8 --reason KIND:TEXT')
    async with opened(chosen) as newton:
        usual = frame_named(newton.frames, frame) if frame else None
        choice = Choice(
            description=description or _asked("What is decided? "),
            confidence=0.5 if confidence is None else confidence,
            at=newton.scope.now(),
            context=context,
            alternatives=tuple(alternative or ()),
            reasons=tuple(reason_of(given) for given in reason or ()),
            tags=tuple(tag or ()),
            category=category or (usual.category if usual else "process"),
            stakes=stakes or (usual.default_stakes if usual else "medium"),
            frame=usual.name if usual else None,
            expected=expect,
            look_again_at=look_again,
            reviewed_by=reviewed_by,
            ref=ref,
        )
        deciding = newton.deciding("cli")
        if confidence is None:
            choice = await _walked(deciding, choice)
        if dry_run:
            return _shown(await deciding.look(choice), json=json)
        decided = await deciding.decide(choice, supersedes=supersedes or ())
        await newton.upkeep("cli").settle()
    _told(decided, json=json)
    return 0


def reason_of(given: str) -> Reason:
    """Raises InputError for what is not KIND:TEXT."""
    kind, colon, text = given.partition(":")
    if not colon or kind.strip() not in KINDS or not text.strip():
        hint = did_you_mean(kind.strip(), KINDS) or f"Write KIND:TEXT; kinds: {', '.join(KINDS)}."
        raise InputError(f"{given!r} is no reason.", hint=hint)
    return Reason(cast("ReasonKind", kind.strip()), text.strip())


def lines_of(outlook: Outlook) -> Iterator[str]:
    """What is to be seen before a choice is made."""
    stands, category = outlook.standing, outlook.choice.category
    if outlook.precedents:
        yield "Similar decisions:"
        yield from (f"  {short(found.memory_id)}  {found.summary}" for found in outlook.precedents)
    else:
        yield "Nothing similar was decided before."
    if stands.category_success_rate is None:
        yield f"No decision in {category} was judged yet."
    else:
        many = f"{stands.category_judged} judged" if stands.category_judged > 1 else "the one judged"
        yield f"Of {many} in {category}, {stands.category_success_rate:.0%} succeeded."
    if stands.overdue:
        yield f"{stands.overdue} decisions wait for their outcome: `newton decisions list --due`."
    yield from (f"Censor: {censor.line}" for censor in outlook.censors.met)
    yield from (f"Guardrail: {ruling.words}" for ruling in outlook.rulings if ruling.words)


def _shown(outlook: Outlook, *, json: bool) -> int:
    if json:
        show.as_json(_plain(outlook))
    else:
        say("\n".join([*lines_of(outlook), _quality(outlook)]))
    return int(outlook.blocked)


def _told(decided: Decided, *, json: bool) -> None:
    if json:
        show.as_json({"decision_id": str(decided.decision_id), "new": decided.new, **_plain(decided.outlook)})
        return
    say("\n".join([*lines_of(decided.outlook), _quality(decided.outlook)]))
    say(f"Recorded as {short(decided.decision_id)}." if decided.new else "Recorded already; nothing changed.")
    show.missing(decided.outlook.missing)


def _quality(outlook: Outlook) -> str:
    lacking = [name for name, given in outlook.quality.items() if given < PARTS[name][0]]
    return f"Quality {score(outlook.quality):.2f}" + (f"; it would gain by: {', '.join(lacking)}." if lacking else ".")


def _plain(outlook: Outlook) -> dict[str, object]:
    stands = outlook.standing
    return {
        "quality": {"score": score(outlook.quality), "parts": outlook.quality},
        "precedents": [
            {
                "decision_id": str(found.memory_id),
                "text": found.summary,
                "outcome": found.outcome,
                "cosine": round(found.similarity, 6),
            }
            for found in outlook.precedents
        ],
        "base_rate": {
            "category": outlook.choice.category,
            "judged": stands.category_judged,
            "success_rate": stands.category_success_rate,
        },
        "censors": [{"memory_id": str(c.memory_id), "blocks": c.blocks, "line": c.line} for c in outlook.censors.met],
        "guardrails": [
            {"name": ruling.rule.name, "verdict": ruling.verdict, "words": ruling.words} for ruling in outlook.rulings
        ],
        "missing": outlook.missing,
    }


async def _walked(deciding: Deciding, choice: Choice) -> Choice:
    """Step by step: what is known of such decisions comes before the reasons, and confidence last."""
    choice = replace(
        choice,
        category=_asked(f"What is it about? [{choice.category}] ", choice.category),
        stakes=cast("Stakes", _asked(f"Stakes: {', '.join(get_args(Stakes))}? [{choice.stakes}] ", choice.stakes)),
        context=choice.context or _asked("In which situation? ", "") or None,
    )
    say("\n".join(lines_of(await deciding.look(choice))))
    choice = replace(
        choice,
        alternatives=choice.alternatives or tuple(_several("What else was considered? (an empty line ends) ")),
        reasons=choice.reasons or tuple(map(reason_of, _several(f"Why? KIND:TEXT, of {', '.join(KINDS)}: "))),
        expected=choice.expected or _asked("What should come of it? ", "") or None,
        look_again_at=choice.look_again_at or _asked_day("When should that be known, as 2026-12-01? "),
    )
    choice = replace(choice, confidence=_asked_number("How sure are you that it will succeed, from 0 to 1? "))
    ruled = await deciding.look(choice)
    say("\n".join(f"Guardrail: {ruling.words}" for ruling in ruled.rulings if ruling.words) or _quality(ruled))
    if _asked("Record it? [Y/n] ", "y").lower() not in {"y", "yes"}:
        raise InputError("Nothing was recorded.", hint="Call `newton decide` again when it is clear.")
    return choice


def _asked(question: str, otherwise: str | None = None) -> str:
    """What was answered; asked again until something was, unless there is an answer otherwise."""
    while not (answer := input(visible(question)).strip()) and otherwise is None:
        pass
    return answer or otherwise or ""


def _several(question: str) -> Iterator[str]:
    while answer := _asked(question, ""):
        yield answer


def _asked_day(question: str) -> datetime | None:
    while answer := _asked(question, ""):
        try:
            return moment(answer, now=SystemClock().now())
        except InputError as error:
            say(f"{error.what} {error.hint} Or write nothing.")
    return None


def _asked_number(question: str) -> float:
    while True:
        try:
            return float(_asked(question))
        except ValueError:
            say("That is no number; write it as 0.8.")
