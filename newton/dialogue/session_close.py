"""The end of a session: what no episode covers yet becomes one or more, by a template and without a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import Message
from newton.dialogue.sentence_centrality import central_sentences
from newton.heart import episodes
from newton.heart.episodes import EpisodeRange, NewEpisode
from newton.memory.memory import Trust, WriteContext, lowest_trust
from newton.memory.question_detection import is_only_question
from newton.memory.representations import one_line

SQL = load("newton.dialogue", "session_close.sql")

# Fewer lines are no experience to tell of, and neither are questions alone; they wait until the session has more.
MIN_MESSAGES = 4
# More are more than one experience.
MAX_MESSAGES = 200
MAX_TITLE_CHARS = 60
SUMMARY_SENTENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class UncoveredMessage:
    """A line that no episode covers, and the memory it became, if it became one."""

    position: int
    message: Message
    memory_id: UUID | None
    trust: Trust | None


async def close_session(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> int:
    """Makes the episodes of the lines said since the last one and returns how many: none if there is little to tell."""
    made = 0
    while await _create_next_episode(tx, session_id=session_id, ctx=ctx):
        made += 1
    return made


async def _create_next_episode(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> bool:
    lived = await _load_uncovered(tx, session_id=session_id, ctx=ctx)
    if len(lived) < MIN_MESSAGES:
        return False
    told = [item for item in lived if item.memory_id] or lived
    if len(lived) < MAX_MESSAGES and all(is_only_question(item.message.content) for item in told):
        return False
    lowest = lowest_trust([item.trust for item in told if item.trust] or ["agent"])
    experience = to_episode(told, session_id=session_id, first=lived[0].position, last=lived[-1].position)
    return await episodes.add_episodes(tx, [experience], ctx=replace(ctx, trust=lowest)) == 1


async def _load_uncovered(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> list[UncoveredMessage]:
    rows = await SQL["list_uncovered"].fetch_all(
        tx, agent_id=ctx.agent_id, session_id=session_id, max_rows=MAX_MESSAGES
    )
    return [
        UncoveredMessage(
            position=row["position"],
            message=Message(role=row["role"], name=row["name"], content=row["content"], said_at=row["said_at"]),
            memory_id=row["memory_id"],
            trust=row["trust"],
        )
        for row in rows
    ]


def to_episode(messages: Sequence[UncoveredMessage], *, session_id: UUID, first: int, last: int) -> NewEpisode:
    """The template: what began it, what it came back to and what ended it, in the speakers' own words. Pure."""
    begin, end = messages[0], messages[-1]
    people = tuple(dict.fromkeys(item.message.speaker for item in messages))
    times = sorted(item.message.said_at for item in messages)
    words = one_line(begin.message.content)
    title = words if len(words) <= MAX_TITLE_CHARS else words[:MAX_TITLE_CHARS].rsplit(" ", 1)[0] + " …"
    between = [item.message.content for item in messages[1:-1]]
    gist = " ".join(one_line(sentence) for sentence in central_sentences(between, limit=SUMMARY_SENTENCES))
    came_back = f" They came back to this: {gist}" if gist else ""
    ended = f"{end.message.speaker}: {one_line(end.message.content)}"
    return NewEpisode(
        ref=f"{session_id}:{first}",
        title=title,
        content=f"{' and '.join(people)} talked, {last - first + 1} lines.{came_back} It ended with {ended}",
        started_at=times[0],
        ended_at=times[-1],
        participants=people,
        message_range=EpisodeRange(session_id=session_id, first=first, last=last),
        sources=tuple(item.memory_id for item in (begin, end) if item.memory_id),
    )
