"""Closing of sessions: messages that are in no episode yet become episodes, without a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import Message
from newton.heart import episodes
from newton.heart.episodes import EpisodeRange, NewEpisode
from newton.memory.memory import UNTRUSTED_TIERS, Trust, WriteContext, lowest_trust
from newton.memory.representations import one_line
from newton.text.questions import is_only_question, remove_questions
from newton.text.sentences import central_sentences

SQL = load("newton.dialogue", "session_close.sql")

# Of one episode. Fewer messages, unless a user states something in them, and only questions wait for more messages.
MIN_MESSAGES, MAX_MESSAGES = 4, 200
MIN_STATEMENT_WORDS = 3
MAX_TITLE_CHARS = 60
SUMMARY_SENTENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class UncoveredMessage:
    """A message that no episode includes yet, with id and trust of the memory created from it; None without one.

    `is_hidden` means that a person asked not to keep it in memory.
    """

    position: int
    message: Message
    memory_id: UUID | None
    trust: Trust | None
    is_hidden: bool = False


async def close_session(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> int:
    """Create episodes (conversations as experiences) from the messages since the last one; return how many.

    Few messages that state nothing become none yet.
    """
    created, key = 0, {"agent_id": ctx.agent_id, "session_id": session_id}
    while uncovered := await _load_uncovered(tx, session_id=session_id, ctx=ctx):
        await SQL["mark_reviewed"].execute(tx, **key, position=uncovered[-1].position)
        if not _is_episode(uncovered) or not await _create_episode(tx, uncovered, session_id=session_id, ctx=ctx):
            break
        created += 1
    return created


async def find_idle_sessions(tx: Tx, *, agent_id: UUID, before: datetime, limit: int) -> list[UUID]:
    """Return the sessions that got messages since they were last closed, the last one earlier than `before`."""
    rows = await SQL["list_idle"].fetch_all(tx, agent_id=agent_id, before=before, max_rows=limit)
    return [row["session_id"] for row in rows]


def _is_episode(uncovered: Sequence[UncoveredMessage]) -> bool:
    """Return whether the messages make an episode: MIN_MESSAGES, not all questions, or a statement of a user. Pure."""
    if len(uncovered) >= MAX_MESSAGES:
        return bool(_spoken(uncovered))
    messages = [item for item in _spoken(uncovered) if not is_only_question(item.message.content)]
    if len(uncovered) >= MIN_MESSAGES:
        return bool(messages)
    user_texts = [item.message.content for item in messages if item.message.role == "user" and item.memory_id]
    return any(len(content.split()) >= MIN_STATEMENT_WORDS for content in user_texts)


def _spoken(uncovered: Sequence[UncoveredMessage]) -> Sequence[UncoveredMessage]:
    """Return the visible messages with memories. If there are none, return all, or none if any message is hidden."""
    spoken = [item for item in uncovered if item.memory_id and not item.is_hidden]
    return spoken or ([] if any(item.is_hidden for item in uncovered) else uncovered)


def _select_trusted(messages: Sequence[UncoveredMessage]) -> Sequence[UncoveredMessage]:
    """Return the messages without text of tools and the web, which would put the whole episode in quarantine."""
    return [item for item in messages if item.trust not in UNTRUSTED_TIERS] or messages


async def _create_episode(
    tx: Tx, uncovered: Sequence[UncoveredMessage], *, session_id: UUID, ctx: WriteContext
) -> bool:
    messages = _select_trusted(_spoken(uncovered))
    lowest = lowest_trust([item.trust for item in messages if item.trust] or ["agent"])
    episode = to_episode(messages, session_id=session_id, first=uncovered[0].position, last=uncovered[-1].position)
    return await episodes.add_episodes(tx, [episode], ctx=replace(ctx, trust=lowest)) == 1


async def _load_uncovered(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> list[UncoveredMessage]:
    key = {"agent_id": ctx.agent_id, "session_id": session_id}
    rows = await SQL["list_uncovered"].fetch_all(tx, **key, max_rows=MAX_MESSAGES)
    return [
        UncoveredMessage(
            position=row["position"],
            message=Message(role=row["role"], name=row["name"], content=row["content"], said_at=row["said_at"]),
            memory_id=row["memory_id"],
            trust=row["trust"],
            is_hidden=row["is_hidden"],
        )
        for row in rows
    ]


def to_episode(messages: Sequence[UncoveredMessage], *, session_id: UUID, first: int, last: int) -> NewEpisode:
    """Create an episode that summarizes messages: the first one, the most central sentences, and the last one. Pure.

    Questions are left out unless there is nothing else, because they contain nothing that was learnt.
    """
    telling = [item for item in messages if not is_only_question(item.message.content)] or messages
    begin, end = telling[0], telling[-1]
    people = tuple(dict.fromkeys(item.message.speaker for item in messages))
    times = sorted(item.message.said_at for item in messages)
    opening = one_line(begin.message.content)
    title = opening if len(opening) <= MAX_TITLE_CHARS else opening[:MAX_TITLE_CHARS].rsplit(" ", 1)[0] + " …"
    between = [remove_questions(item.message.content) for item in telling[1:-1]]
    central = " ".join(one_line(sentence) for sentence in central_sentences(between, limit=SUMMARY_SENTENCES))
    came_back = f" They came back to this: {central}" if central else ""
    count = "1 line" if last == first else f"{last - first + 1} lines"
    ended = f"{end.message.speaker}: {one_line(end.message.content)}"
    return NewEpisode(
        ref=f"{session_id}:{first}",
        title=title,
        content=f"{' and '.join(people)} talked, {count}.{came_back} It ended with {ended}",
        started_at=times[0],
        ended_at=times[-1],
        participants=people,
        message_range=EpisodeRange(session_id=session_id, first=first, last=last),
        sources=tuple(item.memory_id for item in (messages[0], messages[-1]) if item.memory_id),
    )
