"""The end of a session: what no episode covers yet becomes one or more, by a template and without a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.gist import central
from newton.dialogue.lines import Line
from newton.heart import episodes
from newton.heart.episodes import Experience, Span
from newton.memory.memory import Teller, Trust, least
from newton.memory.questions import only_asks
from newton.memory.representations import one_line

SQL = load("newton.dialogue", "closing.sql")

# Fewer lines are no experience to tell of, and neither are questions alone; they wait until the session has more.
FEWEST_LINES = 4
# More are more than one experience.
MOST_LINES = 200
TITLE_CHARACTERS = 60
GIST_SENTENCES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """A line that no episode covers, and the memory it became, if it became one."""

    position: int
    line: Line
    memory_id: UUID | None
    trust: Trust | None


async def close(tx: Tx, *, session_id: UUID, ctx: Teller) -> int:
    """Makes the episodes of the lines said since the last one and returns how many: none if there is little to tell."""
    made = 0
    while await _made_next(tx, session_id=session_id, ctx=ctx):
        made += 1
    return made


async def _made_next(tx: Tx, *, session_id: UUID, ctx: Teller) -> bool:
    lived = await _uncovered(tx, session_id=session_id, ctx=ctx)
    if len(lived) < FEWEST_LINES:
        return False
    told = [item for item in lived if item.memory_id] or lived
    if len(lived) < MOST_LINES and all(only_asks(item.line.content) for item in told):
        return False
    lowest = least([item.trust for item in told if item.trust] or ["agent"])
    experience = experienced(told, session_id=session_id, first=lived[0].position, last=lived[-1].position)
    return await episodes.keep(tx, [experience], ctx=replace(ctx, trust=lowest)) == 1


async def _uncovered(tx: Tx, *, session_id: UUID, ctx: Teller) -> list[Lived]:
    rows = await SQL["list_uncovered"].all(tx, agent_id=ctx.agent_id, session_id=session_id, max_rows=MOST_LINES)
    return [
        Lived(
            position=row["position"],
            line=Line(role=row["role"], name=row["name"], content=row["content"], said_at=row["said_at"]),
            memory_id=row["memory_id"],
            trust=row["trust"],
        )
        for row in rows
    ]


def experienced(lived: Sequence[Lived], *, session_id: UUID, first: int, last: int) -> Experience:
    """The template: what began it, what it came back to and what ended it, in the speakers' own words. Pure."""
    begin, end = lived[0], lived[-1]
    people = tuple(dict.fromkeys(item.line.speaker for item in lived))
    times = sorted(item.line.said_at for item in lived)
    words = one_line(begin.line.content)
    title = words if len(words) <= TITLE_CHARACTERS else words[:TITLE_CHARACTERS].rsplit(" ", 1)[0] + " …"
    between = [item.line.content for item in lived[1:-1]]
    gist = " ".join(one_line(sentence) for sentence in central(between, most=GIST_SENTENCES))
    came_back = f" They came back to this: {gist}" if gist else ""
    ended = f"{end.line.speaker}: {one_line(end.line.content)}"
    return Experience(
        ref=f"{session_id}:{first}",
        title=title,
        content=f"{' and '.join(people)} talked, {last - first + 1} lines.{came_back} It ended with {ended}",
        started_at=times[0],
        ended_at=times[-1],
        participants=people,
        span=Span(session_id=session_id, first=first, last=last),
        sources=tuple(item.memory_id for item in (begin, end) if item.memory_id),
    )
