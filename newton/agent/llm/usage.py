"""The tokens that an agent's calls of the chat model used, recorded for each call."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory.memory import TokenCounter
from newton.providers.chat import ChatReply
from newton.providers.token_calibration import MIN_RATIO, UsageSample

SQL = load("newton.agent.llm", "usage.sql")

SUMMARY_PURPOSE = "compact"  # of calls that summarize conversations
SAMPLE_LIMIT = 20  # number of calls used to fit the token calibration


async def count_tokens_today(tx: Tx, *, agent_id: UUID, now: datetime, of_summaries: bool | None = None) -> int:
    """Return the number of input and output tokens that the agent used since midnight UTC.

    `of_summaries` selects the calls that summarized conversations (True) or all others (False); None selects both.
    """
    row = await SQL["sum_tokens"].fetch_one(
        tx, agent_id=agent_id, since=_midnight(now), summary_purpose=SUMMARY_PURPOSE, of_summaries=of_summaries
    )
    assert row is not None
    return row["tokens"]


async def count_share(tx: Tx, *, agent_id: UUID, since: datetime, purpose: str) -> tuple[int, int]:
    """Return the number of tokens that the agent used since a time, and how many of them were used for a purpose."""
    row = await SQL["count_share"].fetch_one(tx, agent_id=agent_id, since=since, purpose=purpose)
    assert row is not None
    return row["tokens"], row["own"]


class PromptSize(NamedTuple):
    """The size of a prompt: its tokens by the local token counter, and its number of messages."""

    tokens: int
    messages: int


def estimate_reply(model: str, input_tokens: int, text: str, *, count_tokens: TokenCounter) -> ChatReply:
    """Return the text of an interrupted reply as a ChatReply whose tokens are estimated by the local token counter."""
    return ChatReply(
        text=text,
        model=model,
        input_tokens=input_tokens,
        output_tokens=count_tokens(text),
        estimated=True,
        finish="interrupted",
    )


def correct_usage(reply: ChatReply, input_tokens: int, *, count_tokens: TokenCounter) -> ChatReply:
    """Return the reply with local estimates of its tokens if the endpoint reports implausibly few.

    The daily limit must hold also for an endpoint that reports none. `input_tokens` are those of the prompt by the
    local token counter. A model's tokenizer may need fewer tokens than the local one, but not less than `MIN_RATIO`.
    """
    least, output = math.ceil(MIN_RATIO * input_tokens), count_tokens(reply.text) if reply.text else 0
    if reply.input_tokens >= least and reply.output_tokens >= int(MIN_RATIO * output):
        return reply
    return replace(
        reply,
        input_tokens=max(reply.input_tokens, input_tokens),
        output_tokens=max(reply.output_tokens, output),
        estimated=True,
    )


class UsageRecord(NamedTuple):
    """The tokens of one model call: its reply, its purpose, the size of its prompt if that was counted, and its id."""

    reply: ChatReply
    purpose: str
    prompt_size: PromptSize | None = None
    usage_id: UUID | None = None


async def record(tx: Tx, usage: UsageRecord, *, agent_id: UUID, now: datetime) -> None:
    """Record the tokens of a model call, under its id or a new one."""
    reply, size = usage.reply, usage.prompt_size
    await SQL["record_usage"].execute(
        tx,
        agent_id=agent_id,
        usage_id=usage.usage_id or new_id(),
        created_at=now,
        model=reply.model,
        purpose=usage.purpose,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        estimated=reply.estimated,
        counted_tokens=size and size.tokens,
        message_count=size and size.messages,
    )


class ModelUsage(NamedTuple):
    """The tokens that an agent used since midnight UTC except for summaries, and the latest calls of one model.

    The calls, with the tokens that the model reported, calibrate the local token counter.
    """

    tokens_today: int = 0
    samples: Sequence[UsageSample] = ()


async def read_usage(tx: Tx, *, agent_id: UUID, model: str, now: datetime) -> ModelUsage:
    """Return the tokens that the agent used today, except for summaries, and the latest calls of `model`."""
    rows = await SQL["read_usage"].fetch_all(
        tx,
        agent_id=agent_id,
        since=_midnight(now),
        summary_purpose=SUMMARY_PURPOSE,
        model=model,
        max_rows=SAMPLE_LIMIT,
    )
    samples = [UsageSample(*row[1:]) for row in rows if row["counted"] is not None]
    return ModelUsage(rows[0]["tokens"], samples)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
