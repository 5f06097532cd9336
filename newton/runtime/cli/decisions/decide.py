"""`newton decide`: what speaks for and against a choice, then its record."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated, cast, get_args

from cyclopts import Parameter

from newton.agent.services.decisions import DecisionPreview, DecisionResult, DecisionService
from newton.brain.draft import DecisionDraft, DecisionReason, ReasonKind, Stakes
from newton.brain.quality import QUALITY_PARTS, total_score
from newton.clock import SystemClock
from newton.content.frames import get_frame
from newton.content.yaml_models import did_you_mean
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, load_settings, parse_time
from newton.runtime.cli.printing import say, visible

REASON_KINDS: tuple[str, ...] = get_args(ReasonKind)
REASON_HELP = f"Why, as KIND:TEXT; may be given often. Kinds: {', '.join(REASON_KINDS)}."


async def record_decision(
    description: str | None = None,
    *,
    confidence: Annotated[float | None, Parameter(help="How sure you are that it will succeed, from 0 to 1.")] = None,
    reason: Annotated[list[str] | None, Parameter(negative=(), help=REASON_HELP)] = None,
    alternative: Annotated[list[str] | None, Parameter(negative=(), help="What else was considered.")] = None,
    stakes: Annotated[Stakes | None, Parameter(help="How much hangs on it; medium, if the frame says nothing.")] = None,
    category: Annotated[str | None, Parameter(help="What it is about, such as architecture.")] = None,
    tag: Annotated[list[str] | None, Parameter(negative=(), help="A word to find it by.")] = None,
    context: Annotated[str | None, Parameter(help="The situation in which it is made.")] = None,
    expect: Annotated[str | None, Parameter(help="What should come of it.")] = None,
    look_again: Annotated[
        datetime | None, StartTime, Parameter(help="When that should be known, such as 2026-12-01 or 'next month'.")
    ] = None,
    reviewed_by: Annotated[str | None, Parameter(help="Who else has looked at it before.")] = None,
    supersedes: Annotated[list[str] | None, Parameter(negative=(), help="The decision whose place it takes.")] = None,
    frame: Annotated[str | None, Parameter(help="Take stakes and category from this frame.")] = None,
    ref: Annotated[str | None, Parameter(help="Your own id of it: under the same one it is recorded once.")] = None,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only look; record nothing.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Record a decision before it is carried out. Similar decisions, censors, guardrails and the base rate come first.

    In a terminal, without --confidence, it asks step by step.

    Example: newton decide "Use Redis for the cache" --confidence 0.8 --reason "analysis:reads outnumber writes"

    Parameters
    ----------
    description:
        What was chosen, in a line.
    """
    chosen = load_settings(agent)
    if (description is None or confidence is None) and not sys.stdin.isatty():
        missing = "description" if description is None else "confidence"
        raise InputError(f"The {missing} is missing.", hint='newton decide "WHAT" --confidence 0.8 --reason KIND:TEXT')
    async with open_newton(chosen) as newton:
        usual = get_frame(newton.frames, frame) if frame else None
        choice = DecisionDraft(
            description=description or _ask("What is decided? "),
            confidence=0.5 if confidence is None else confidence,
            at=newton.scope.now(),
            context=context,
            alternatives=tuple(alternative or ()),
            reasons=tuple(parse_reason(given) for given in reason or ()),
            tags=tuple(tag or ()),
            category=category or (usual.category if usual else "process"),
            stakes=stakes or (usual.default_stakes if usual else "medium"),
            frame=usual.name if usual else None,
            expected=expect,
            look_again_at=look_again,
            reviewed_by=reviewed_by,
            ref=ref,
        )
        deciding = newton.decisions("cli")
        if confidence is None:
            choice = await _ask_step_by_step(deciding, choice)
        if dry_run:
            return _print_preview(await deciding.preview(choice), json=json)
        decided = await deciding.decide(choice, supersedes=supersedes or ())
        await newton.maintenance("cli").process_pending()
    _print_result(decided, json=json)
    return 0


def parse_reason(argument: str) -> DecisionReason:
    """Raises InputError for what is not KIND:TEXT."""
    kind, colon, text = argument.partition(":")
    if not colon or kind.strip() not in REASON_KINDS or not text.strip():
        hint = did_you_mean(kind.strip(), REASON_KINDS) or f"Write KIND:TEXT; kinds: {', '.join(REASON_KINDS)}."
        raise InputError(f"{argument!r} is no reason.", hint=hint)
    return DecisionReason(cast("ReasonKind", kind.strip()), text.strip())


def format_preview(preview: DecisionPreview) -> Iterator[str]:
    """What is to be seen before a choice is made."""
    stands, category = preview.track_record, preview.draft.category
    if preview.precedents:
        yield "Similar decisions:"
        yield from (f"  {short_id(found.memory_id)}  {found.summary}" for found in preview.precedents)
    else:
        yield "Nothing similar was decided before."
    if stands.category_success_rate is None:
        yield f"No decision in {category} was judged yet."
    else:
        many = f"{stands.category_judged} judged" if stands.category_judged > 1 else "the one judged"
        yield f"Of {many} in {category}, {stands.category_success_rate:.0%} succeeded."
    if stands.overdue:
        yield f"{stands.overdue} decisions wait for their outcome: `newton decisions list --due`."
    yield from (f"Censor: {censor.context_line}" for censor in preview.censor_check.matches)
    yield from (f"Guardrail: {ruling.message}" for ruling in preview.guardrail_results if ruling.message)


def _print_preview(preview: DecisionPreview, *, json: bool) -> int:
    if json:
        formatting.print_json(_preview_to_json(preview))
    else:
        say("\n".join([*format_preview(preview), _format_quality(preview)]))
    return int(preview.blocks)


def _print_result(result: DecisionResult, *, json: bool) -> None:
    if json:
        formatting.print_json(
            {"decision_id": str(result.decision_id), "new": result.is_new, **_preview_to_json(result.preview)}
        )
        return
    say("\n".join([*format_preview(result.preview), _format_quality(result.preview)]))
    say(f"Recorded as {short_id(result.decision_id)}." if result.is_new else "Recorded already; nothing changed.")
    formatting.print_missing_sources(result.preview.missing)


def _format_quality(preview: DecisionPreview) -> str:
    lacking = [name for name, given in preview.quality.items() if given < QUALITY_PARTS[name][0]]
    return f"Quality {total_score(preview.quality):.2f}" + (
        f"; it would gain by: {', '.join(lacking)}." if lacking else "."
    )


def _preview_to_json(preview: DecisionPreview) -> dict[str, object]:
    stands = preview.track_record
    return {
        "quality": {"score": total_score(preview.quality), "parts": preview.quality},
        "precedents": [
            {
                "decision_id": str(found.memory_id),
                "text": found.summary,
                "outcome": found.outcome,
                "cosine": round(found.similarity, 6),
            }
            for found in preview.precedents
        ],
        "base_rate": {
            "category": preview.draft.category,
            "judged": stands.category_judged,
            "success_rate": stands.category_success_rate,
        },
        "censors": [
            {"memory_id": str(c.memory_id), "blocks": c.is_blocking, "line": c.context_line}
            for c in preview.censor_check.matches
        ],
        "guardrails": [
            {"name": ruling.rule.name, "verdict": ruling.verdict, "words": ruling.message}
            for ruling in preview.guardrail_results
        ],
        "missing": preview.missing,
    }


async def _ask_step_by_step(service: DecisionService, draft: DecisionDraft) -> DecisionDraft:
    """Step by step: what is known of such decisions comes before the reasons, and confidence last."""
    draft = replace(
        draft,
        category=_ask(f"What is it about? [{draft.category}] ", draft.category),
        stakes=cast("Stakes", _ask(f"Stakes: {', '.join(get_args(Stakes))}? [{draft.stakes}] ", draft.stakes)),
        context=draft.context or _ask("In which situation? ", "") or None,
    )
    say("\n".join(format_preview(await service.preview(draft))))
    draft = replace(
        draft,
        alternatives=draft.alternatives or tuple(_ask_repeatedly("What else was considered? (an empty line ends) ")),
        reasons=draft.reasons
        or tuple(map(parse_reason, _ask_repeatedly(f"Why? KIND:TEXT, of {', '.join(REASON_KINDS)}: "))),
        expected=draft.expected or _ask("What should come of it? ", "") or None,
        look_again_at=draft.look_again_at or _ask_date("When should that be known, as 2026-12-01? "),
    )
    draft = replace(draft, confidence=_ask_number("How sure are you that it will succeed, from 0 to 1? "))
    ruled = await service.preview(draft)
    say(
        "\n".join(f"Guardrail: {ruling.message}" for ruling in ruled.guardrail_results if ruling.message)
        or _format_quality(ruled)
    )
    if _ask("Record it? [Y/n] ", "y").lower() not in {"y", "yes"}:
        raise InputError("Nothing was recorded.", hint="Call `newton decide` again when it is clear.")
    return draft


def _ask(question: str, default: str | None = None) -> str:
    """What was answered; asked again until something was, unless there is an answer otherwise."""
    while not (answer := input(visible(question)).strip()) and default is None:
        pass
    return answer or default or ""


def _ask_repeatedly(question: str) -> Iterator[str]:
    while answer := _ask(question, ""):
        yield answer


def _ask_date(question: str) -> datetime | None:
    while answer := _ask(question, ""):
        try:
            return parse_time(answer, now=SystemClock().now())
        except InputError as error:
            say(f"{error.what} {error.hint} Or write nothing.")
    return None


def _ask_number(question: str) -> float:
    while True:
        try:
            return float(_ask(question))
        except ValueError:
            say("That is no number; write it as 0.8.")
