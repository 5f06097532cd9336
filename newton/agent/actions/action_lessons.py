"""Proposals that follow from repeated mistakes with tools: a censor, or a procedure. A person confirms them.

Pure, except for the functions that store a proposal.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from newton.agent.actions.action_store import ToolAction
from newton.content.skills import SkillFile, make_slug
from newton.db.pool import Tx
from newton.errors import ConflictError, InputError
from newton.heart import censors, procedures
from newton.heart.censors import CensorRule
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory.hygiene import clean_model_text
from newton.memory.representations import one_line

Lesson = Literal["repeated_failure", "repeated_recovery"]

LOOKBACK = timedelta(days=30)
MAX_ACTIONS = 100  # of one tool that are considered
MIN_FAILURES = 3  # of the same call
MIN_RECOVERIES = 2  # failures of a tool that another call of it in the same session repaired
MAX_TRIGGER_CHARS, MAX_TEXT_CHARS = 200, 200


def find_lesson(actions: Sequence[ToolAction]) -> Lesson | None:
    """Return the pattern that the latest call of a tool completes; None without one. `actions` are its calls.

    They are sorted latest first. `repeated_failure`: the same call has failed MIN_FAILURES times and never succeeded.
    `repeated_recovery`: for the MIN_RECOVERIES-th time, a call succeeded after one with other arguments had failed in
    the same session.
    """
    if not actions:
        return None
    last = actions[0]
    if last.outcome == "failure":
        same = [one for one in actions if one.arguments_hash == last.arguments_hash]
        failed = all(one.outcome == "failure" for one in same)
        return "repeated_failure" if failed and len(same) >= MIN_FAILURES else None
    return "repeated_recovery" if _is_recovery(actions, 0) and _count_recoveries(actions) >= MIN_RECOVERIES else None


def _count_recoveries(actions: Sequence[ToolAction]) -> int:
    return sum(_is_recovery(actions, place) for place in range(len(actions)))


def _is_recovery(actions: Sequence[ToolAction], place: int) -> bool:
    """Return whether the call at `place` succeeded after the session's previous call, with other arguments, failed."""
    one = actions[place]
    before = next((other for other in actions[place + 1 :] if other.session_id == one.session_id), None)
    is_other = before is not None and before.arguments_hash != one.arguments_hash
    return one.outcome == "success" and before is not None and before.outcome == "failure" and is_other


async def propose_censor(tx: Tx, action_text: str, error: str, *, ctx: LifecycleContext) -> bool:
    """Propose a censor, a rule that warns of a call, for one that failed repeatedly; return False if none is new.

    It is not in force before a person approves it. A call without words to match gets none. `ctx` must have the trust
    of a tool, whose texts it quotes.
    """
    trigger = _cut(action_text, MAX_TRIGGER_CHARS)
    reason = f"This call failed {MIN_FAILURES} times; the last error was: {_cut(error, MAX_TEXT_CHARS)}"
    try:
        return bool(await censors.add_rules(tx, [CensorRule(trigger=trigger, reason=reason)], ctx=ctx))
    except InputError:
        return False  # the call has no words to match


async def propose_procedure(tx: Tx, tool: str, failed: str, succeeded: str, *, ctx: LifecycleContext) -> bool:
    """Propose a procedure: make the call `succeeded`, not the call `failed`. Return False if there is one already.

    It is in quarantine, and so in no context, before a person approves it.
    """
    skill = SkillFile(
        name=make_slug(f"calling {tool}"),
        description=f"Call {tool} in the way that succeeded after failures.",
        triggers=(tool[:100],),
        tools=(tool[:100],),
        core=(f"Do not call: {_cut(failed, MAX_TEXT_CHARS)}", f"Call instead: {_cut(succeeded, MAX_TEXT_CHARS)}"),
    )
    try:
        return await procedures.add_procedure(tx, skill, ctx=ctx) is not None
    except ConflictError:
        return False


def _cut(text: str, max_chars: int) -> str:
    line = clean_model_text(one_line(text)) or "no message"
    return line if len(line) <= max_chars else line[:max_chars].rpartition(" ")[0] or line[:max_chars]
