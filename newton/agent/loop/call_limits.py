"""Limits of a model call: the censors in force, and the tokens that the agent has used today."""

from collections.abc import Sequence
from typing import NamedTuple

from newton.agent.llm.usage import ModelUsage
from newton.agent.loop.action_gate import ActionGate
from newton.agent.loop.completion import ChatService
from newton.db.pool import Tx
from newton.heart.censors import Censor


class CallLimits(NamedTuple):
    """The censors in force and the tokens used, read together when a turn begins and before each further call."""

    rules: Sequence[Censor]
    usage: ModelUsage


async def load_call_limits(tx: Tx, gate: ActionGate, chat: ChatService) -> CallLimits:
    """Read the limits in the transaction `tx`."""
    return CallLimits(await gate.list_rules(tx), await chat.read_usage(tx))


async def read_call_limits(gate: ActionGate, chat: ChatService) -> CallLimits:
    """Read the limits in a transaction of their own."""
    async with chat.scope.transaction() as tx:
        return await load_call_limits(tx, gate, chat)
