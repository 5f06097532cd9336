"""Web search for current events. Results are stored as artifacts of the session."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.needs_web import find_news_questions
from newton.cognition.sources.session_artifacts import is_searchable
from newton.db.pool import Database, in_transaction
from newton.dialogue.artifacts import Artifact, ArtifactWriter
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import TokenCounter, WriteContext
from newton.memory.representations import SUMMARY_TOKENS

if TYPE_CHECKING:
    from newton.providers.web_search import WebResult, WebSearch

ORIGIN = "web search"
MAX_URL_CHARS = 80  # shown in the text


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSource:
    """Searches the web when an input asks for current events."""

    search: "WebSearch"
    db: Database
    count_tokens: TokenCounter

    def should_search(self, request: ContextBuildRequest, *, now: datetime) -> bool:
        """Return True within a session, for the present, when the input asks for current events."""
        present = request.session_id is not None and request.as_of is None
        return present and request.filters.allows_kind("artifact") and self._asks_for_news(request.input, now)

    def _asks_for_news(self, text: str, now: datetime) -> bool:
        return is_searchable(text) and bool(find_news_questions(text, now=now))

    async def search_and_store(self, request: ContextBuildRequest, *, now: datetime) -> None:
        """Store the results as artifacts of the session. Only the sentences that ask are sent.

        Raises ProviderError.
        """
        assert request.session_id is not None, "nothing is searched outside of a session"
        assert not in_transaction()
        excerpts = await self.search.search(clean_model_text(find_news_questions(request.input, now=now)))
        ctx = WriteContext(
            agent_id=request.agent_id, now=now, origin=ORIGIN, trust="web", count_tokens=self.count_tokens
        )
        writer = ArtifactWriter(session_id=request.session_id, ctx=ctx)
        async with self.db.transaction(request.agent_id) as tx:
            await writer.add_excerpts(tx, to_artifacts(excerpts, now=now))


def to_artifacts(excerpts: "Sequence[WebResult]", *, now: datetime) -> list[Artifact]:
    """Return the results as artifacts with time and URL. Pure."""
    return [
        Artifact(
            type="tools",
            prefix=f"[{now:%Y-%m-%d %H:%M}] from the web ({_shorten_url(one.url)}): ",
            text=clean_model_text(
                " ".join(filter(None, (one.title, one.published and f"({one.published})", one.text)))
            ),
            max_tokens=SUMMARY_TOKENS,
            occurred_at=now,
            trust="web",
            key=("web", f"{now:%Y-%m-%d}", one.url, one.text),
            index=index,
            source=clean_model_text(one.url),
        )
        for index, one in enumerate(excerpts)
    ]


def _shorten_url(url: str) -> str:
    shown = clean_model_text(url)
    return shown if len(shown) <= MAX_URL_CHARS else f"{shown[:MAX_URL_CHARS]}…"
