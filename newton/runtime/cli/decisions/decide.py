"""Command `newton decide`: preview and record a decision."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated, cast, get_args

from cyclopts import Parameter

from newton.agent.services.decisions import DecisionPreview, DecisionResult, DecisionService
from newton.brain.draft import DecisionDraft, DecisionReason, ReasonKind, Stakes
from newton.brain.quality import format_quality, total_score
from newton.clock import SystemClock
from newton.content.frames import get_frame
from newton.content.yaml_models import did_you_mean
from newton.errors import InputError
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import current_terminal, require_own_process
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, load_settings, parse_time
from newton.runtime.cli.printing import say, visible

REASON_KINDS: tuple[str, ...] = get_args(ReasonKind)
REASON_HELP = f"Reason as KIND:TEXT; repeatable. Kinds: {', '.join(REASON_KINDS)}."


async def record_decision(
    description: Annotated[str | None, Parameter(help="What was decided, in one line.")] = None,
    *,
    confidence: Annotated[float | None, Parameter(help="Probability of success, from 0 to 1.")] = None,
    reason: Annotated[list[str] | None, Parameter(negative=(), help=REASON_HELP)] = None,
    alternative: Annotated[list[str] | None, Parameter(negative=(), help="Alternative considered; repeatable.")] = None,
    stakes: Annotated[
        Stakes | None, Parameter(help="Impact of the decision (default: the frame's stakes, else medium).")
    ] = None,
    category: Annotated[
        str | None, Parameter(help="Category, such as architecture (default: the frame's category, else process).")
    ] = None,
    tag: Annotated[list[str] | None, Parameter(negative=(), help="Tag; repeatable.")] = None,
    context: Annotated[str | None, Parameter(help="Situation in which the decision is made.")] = None,
    expected: Annotated[str | None, Parameter(help="Expected outcome.")] = None,
    review_due: Annotated[
        datetime | None, StartTime, Parameter(help="When to review the outcome, such as 2026-12-01 or 'next month'.")
    ] = None,
    reviewed_by: Annotated[str | None, Parameter(help="Person who reviewed the draft.")] = None,
    supersedes: Annotated[
        list[str] | None, Parameter(negative=(), help="Id of an earlier decision that this one supersedes; repeatable.")
    ] = None,
    frame: Annotated[str | None, Parameter(help="Frame that provides default stakes and category.")] = None,
    ref: Annotated[
        str | None, Parameter(help="Idempotency key of your own: a decision with the same ref is recorded only once.")
    ] = None,
    dry_run: Annotated[bool, Parameter(negative=(), help="Preview only; record nothing.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> int:
    """Record a decision before it is carried out.

    The command shows similar decisions, the success rate of the category, and the censors (prohibitions) and guardrails
    (rules for decisions) that apply. Without --confidence, it asks for each field in a terminal.

    Example: newton decide "Use Redis for the cache" --confidence 0.8 --reason "analysis:reads outnumber writes"
    """
    settings = load_settings(agent)
    description = (description or "").strip()
    if not description or confidence is None:
        if not current_terminal().asks():
            missing = "confidence" if description else "description"
            raise InputError(
                f"The {missing} is missing.", hint='newton decide "WHAT" --confidence 0.8 --reason KIND:TEXT'
            )
        require_own_process()
    async with open_agent(settings, on_new_agent=formatting.print_new_agent) as newton:
        defaults = get_frame(newton.frames, frame) if frame else None
        draft = DecisionDraft(
            description=description or _ask("What is decided? "),
            confidence=0.5 if confidence is None else confidence,
            at=newton.scope.now(),
            context=context,
            alternatives=tuple(alternative or ()),
            reasons=tuple(map(parse_reason, reason or ())),
            tags=tuple(tag or ()),
            category=category or (defaults.category if defaults else "process"),
            stakes=stakes or (defaults.default_stakes if defaults else "medium"),
            frame=defaults.name if defaults else None,
            expected=expected,
            look_again_at=review_due,
            reviewed_by=reviewed_by,
            ref=ref,
        )
        service = newton.decisions("cli")
        if confidence is None:
            draft = await _prompt_for_fields(service, draft)
        if dry_run:
            return _print_preview(await service.preview(draft), json=json)
        result = await service.decide(draft, supersedes=supersedes or ())
        await newton.maintenance("cli").process_pending()
    _print_result(result, json=json)
    return 0


def parse_reason(argument: str) -> DecisionReason:
    """Parse a reason written as KIND:TEXT. Raises InputError for an unknown kind or another format."""
    kind, colon, text = argument.partition(":")
    if not colon or kind.strip() not in REASON_KINDS or not text.strip():
        hint = (
            did_you_mean(kind.strip(), REASON_KINDS)
            or f"Write a reason as KIND:TEXT. The kinds are: {', '.join(REASON_KINDS)}."
        )
        raise InputError(f"{argument!r} is not a valid reason.", hint=hint)
    return DecisionReason(cast("ReasonKind", kind.strip()), text.strip())


def format_preview(preview: DecisionPreview) -> Iterator[str]:
    """Yield lines with similar decisions, the category's success rate, and the prohibitions and rules that apply."""
    record, category = preview.track_record, preview.draft.category
    if preview.precedents:
        yield "Similar decisions:"
        yield from (f"  {short_id(precedent.memory_id)}  {precedent.summary}" for precedent in preview.precedents)
    else:
        yield "No similar decisions."
    if record.category_success_rate is None:
        yield f"No decision in {category} has been reviewed yet."
    else:
        many = formatting.pluralize(record.category_judged, "reviewed decision")
        yield f"Base rate: {record.category_success_rate:.0%} of {many} in {category} succeeded."
    if record.overdue:
        many = formatting.pluralize(record.overdue, "decision")
        yield f"{many} overdue for review: `newton decisions list --due`."
    yield from (f"Censor: {censor.context_line}" for censor in preview.censor_check.matches)
    yield from (f"Guardrail: {result.message}" for result in preview.guardrail_results if result.message)


def _print_preview(preview: DecisionPreview, *, json: bool) -> int:
    if json:
        formatting.print_json(_preview_to_json(preview))
    else:
        say("\n".join([*format_preview(preview), format_quality(preview.quality)]))
    return int(preview.blocks)


def _print_result(result: DecisionResult, *, json: bool) -> None:
    if json:
        formatting.print_json(
            {"decision_id": str(result.decision_id), "is_new": result.is_new, **_preview_to_json(result.preview)}
        )
        return
    say("\n".join([*format_preview(result.preview), format_quality(result.preview.quality)]))
    say(f"Recorded as {short_id(result.decision_id)}." if result.is_new else "Already recorded; nothing changed.")
    formatting.print_missing_sources(result.preview.missing)


def _preview_to_json(preview: DecisionPreview) -> dict[str, object]:
    record = preview.track_record
    return {
        "quality": total_score(preview.quality),
        "quality_parts": preview.quality,
        "precedents": [
            {
                "decision_id": str(precedent.memory_id),
                "text": precedent.summary,
                "outcome": precedent.outcome,
                "cosine": round(precedent.similarity, 6),
            }
            for precedent in preview.precedents
        ],
        "base_rate": {
            "category": preview.draft.category,
            "reviewed": record.category_judged,
            "success_rate": record.category_success_rate,
        },
        "censors": [
            {"memory_id": str(c.memory_id), "blocks": c.is_blocking, "text": c.context_line}
            for c in preview.censor_check.matches
        ],
        "guardrails": [
            {"name": result.rule.name, "verdict": result.verdict, "message": result.message}
            for result in preview.guardrail_results
        ],
        "missing": preview.missing,
    }


async def _prompt_for_fields(service: DecisionService, draft: DecisionDraft) -> DecisionDraft:
    """Ask for the missing fields of a decision and for permission to record it; return the complete draft.

    The preview is printed before the reasons are asked for; the confidence is asked for last. Raises InputError if the
    user does not want to record the decision.
    """
    draft = replace(
        draft,
        category=_ask(f"Category? [{draft.category}] ", draft.category),
        stakes=cast("Stakes", _ask(f"Stakes: {', '.join(get_args(Stakes))}? [{draft.stakes}] ", draft.stakes)),
        context=draft.context or _ask("Situation? ", "") or None,
    )
    say("\n".join(format_preview(await service.preview(draft))))
    draft = replace(
        draft,
        alternatives=draft.alternatives
        or tuple(_ask_repeatedly("Alternative considered? (an empty line ends the list) ")),
        reasons=draft.reasons
        or tuple(map(parse_reason, _ask_repeatedly(f"Reason as KIND:TEXT? Kinds: {', '.join(REASON_KINDS)}: "))),
        expected=draft.expected or _ask("Expected outcome? ", "") or None,
        look_again_at=draft.look_again_at or _ask_date("When to review the outcome, such as 2026-12-01? "),
    )
    draft = replace(draft, confidence=_ask_number("Confidence: the probability of success, from 0 to 1? "))
    preview = await service.preview(draft)
    messages = [f"Guardrail: {result.message}" for result in preview.guardrail_results if result.message]
    say("\n".join(messages) or format_quality(preview.quality))
    if _ask("Record it? [Y/n] ", "y").lower() not in {"y", "yes"}:
        raise InputError("Nothing was recorded.", hint="Run `newton decide` again to record a decision.")
    return draft


def _ask(question: str, default: str | None = None) -> str:
    """Return the user's answer, or `default` for an empty one. Without a default, ask until there is an answer."""
    while not (answer := current_terminal().ask(visible(question)).strip()) and default is None:
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
            say(f"{error.what} {error.hint} An empty answer skips this question.")
    return None


def _ask_number(question: str) -> float:
    while True:
        try:
            return float(_ask(question))
        except ValueError:
            say("The answer is not a number. Write a number such as 0.8.")
