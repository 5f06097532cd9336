"""What the web says of these days, kept with the session that asked for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from newton.cognition.earlier import wanted
from newton.cognition.recency import news_asked
from newton.cognition.request import Request
from newton.db.pool import Database, in_unit_of_work
from newton.dialogue.artifacts import Artifact, Writer
from newton.memory.hygiene import mended
from newton.memory.memory import Count, Teller
from newton.memory.representations import SUMMARY_TOKENS

if TYPE_CHECKING:
    from newton.providers.searching import Excerpt, WebSearch

ORIGIN = "web search"
MOST_SHOWN = 80  # characters of an address


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Searches for a session when its input asks for what no memory can know."""

    search: "WebSearch"
    db: Database
    count: Count

    def is_asked(self, request: Request, *, now: datetime) -> bool:
        """Whether the web is to be searched: only within a session, for the present, and when the words ask for it."""
        present = request.session_id is not None and request.as_of is None
        return present and request.filters.admits("artifact") and self._recent(request.input, now)

    def _recent(self, text: str, now: datetime) -> bool:
        return wanted(text) and bool(news_asked(text, now=now))

    async def look(self, request: Request, *, now: datetime) -> None:
        """Keeps what is found as artifacts of the session. Only the sentences that ask are sent. Raises
        ProviderError."""
        assert request.session_id is not None, "nothing is searched outside of a session"
        assert not in_unit_of_work()
        excerpts = await self.search.find(mended(news_asked(request.input, now=now)))
        ctx = Teller(agent_id=request.agent_id, now=now, origin=ORIGIN, trust="web", count_tokens=self.count)
        writer = Writer(session_id=request.session_id, ctx=ctx)
        async with self.db.work(request.agent_id) as tx:
            await writer.keep_excerpts(tx, artifacts(excerpts, now=now))


def artifacts(excerpts: "Sequence[Excerpt]", *, now: datetime) -> list[Artifact]:
    """What was found as it is kept: with its time and its address. Pure."""
    return [
        Artifact(
            type="tools",
            said=f"[{now:%Y-%m-%d %H:%M}] from the web ({_shown(one.url)}): ",
            text=mended(" ".join(filter(None, (one.title, one.published and f"({one.published})", one.text)))),
            most=SUMMARY_TOKENS,
            at=now,
            trust="web",
            key=("web", f"{now:%Y-%m-%d}", one.url, one.text),
            index=index,
            source=mended(one.url),
        )
        for index, one in enumerate(excerpts)
    ]


def _shown(url: str) -> str:
    shown = mended(url)
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]}…"
