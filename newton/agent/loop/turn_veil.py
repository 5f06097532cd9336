"""Turns in which a person states a will over memory: off the record, or answered by what was done."""

from dataclasses import replace

from newton.agent.loop.history_match import IncomingMessage, to_private_view
from newton.agent.loop.turn_recorder import TurnRecorder, VeiledRecorder
from newton.agent.loop.turn_state import PreparedTurn, RunningTurn
from newton.agent.loop.turn_types import PrivateConversation
from newton.agent.scope import AgentScope


def veil_turn(turn: RunningTurn, recorder: TurnRecorder, *, scope: AgentScope) -> RunningTurn:
    """Return a turn with the same prompt of which nothing is stored but that it took place.

    The model gets the words of the person, after the messages of the session that are stored.
    """
    text, position = turn.recorded.text, turn.recorded.position
    sent = turn.input.sent
    view = sent() if sent else to_private_view([IncomingMessage("user", text)] if text else [], scope=scope)
    private = PrivateConversation(
        view=view,
        question=text or None,
        session_id=None if sent else turn.input.session_id,
        last_position=None if position is None else position - 1,
    )
    return replace(
        turn,
        input=replace(turn.input, session_id=None, already_stored=True, earlier=(), private=private),
        recorder=VeiledRecorder(recorder=recorder),
        recorded=turn.recorded._replace(position=None, memory_id=None),
    )


def find_fixed_reply(turn: RunningTurn, *, has_model: bool) -> str | None:
    """Return the reply to an input that only states a will, or that no model can answer; None if a model answers."""
    receipt = turn.recorded.receipt
    return str(receipt) if receipt and (receipt.is_alone or not has_model) else None


def find_notice(turn: RunningTurn, prepared: PreparedTurn) -> str:
    """Return what to add to the reply of a model about the will of the input; nothing to a reply in a format."""
    if not turn.wills or prepared.calls or not turn.options.offers_own_tools:
        return ""
    return f"\n\n({turn.wills[0]})"
