"""Web search for inputs about current events. The results are stored as artifacts of the session.

Only sentences that ask for current events are sent to a web search, so sentences that may be private are excluded.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.session_artifacts import is_searchable
from newton.db.pool import Database, in_transaction
from newton.dialogue.artifacts import Artifact, ArtifactWriter
from newton.memory.hygiene import clean_model_text, find_labelled_secrets
from newton.memory.memory import TokenCounter, WriteContext
from newton.memory.representations import SUMMARY_TOKENS
from newton.text.sentences import split_sentences

if TYPE_CHECKING:
    from newton.providers.web_search import WebResult, WebSearch

MAX_YEARS_AHEAD = 5  # a number further in the future is probably not a year
MAX_SENTENCE_CHARS = 200  # longer sentences are not search queries

# Words that ask for news by themselves.
_NEWS = r"\b(?:news|headlines?|breaking|weather forecast|stock price|exchange rate|up[- ]to[- ]date)\b"
# Words that ask for the newest of something, unless it belongs to the session, the machine or a person.
_NEWEST = r"\b(?:latest|newest|most recent|current)\b"
_OWN_THING = (
    r"\b(?:latest|newest|most recent|current)\W+(?:\w+\W+){0,2}?(?:director(?:y|ies)|folders?|paths?|files?|"
    r"branch(?:es)?|"
    r"commits?|lines?|rows?|columns?|cursor|sessions?|conversations?|chats?|messages?|threads?|process(?:es)?|users?|"
    r"tasks?|steps?|goals?|plans?|topics?|subjects?|questions?|answers?|inputs?|outputs?|contexts?|values?|states?|"
    r"settings?|configurations?|config|implementations?|code|functions?|class(?:es)?|modules?|variables?|indexe?s?|"
    r"positions?|approach(?:es)?|designs?|drafts?|working|thing|things|one|ones)\b"
)
_TOLD = r"\b(?:latest|newest|most recent|current)\b(?:\W+\w+){0,4}?\W+(?:i|i['’]ve|we|we['’]ve|you|you['’]ve)\b"
_WHOSE = r"(?:my|our|your|its|their|his|her|(?!(?:what|who|where|when|how|that|there|here|it)['’])\w+['’]s)"
_OWN = rf"\b{_WHOSE}\W+(?:\w+\W+)?(?:latest|newest|most recent|current)\b"
# Present-time words. They ask for news only together with a topic of _WORLD: others concern personal events.
_WHEN = (
    r"\b(?:today|tonight|yesterday|this (?:week|month|year|quarter)|right now|nowadays|these days|as of now|"
    r"at the moment|currently|recently)\b"
)
_YEAR = re.compile(
    r"(?:\b(?:in|during|since|by)\s(?:[a-z]{3,9}\s)?(20\d\d)(?=[?!.,;:)\s]*(?:$|\s[a-z]))|\bthe\s(20\d\d)\s(?=[a-z]))"
    r"(?!\s*(?:tokens?|px|pixels?|[kmg]i?b|bytes?|ms|lines?|rows?)\b)",
    re.IGNORECASE,
)
# Public topics.
_WORLD = re.compile(
    r"\b(?:weather|forecast|elections?|olympics?|world cup|championships?|league|tournaments?|prizes?|awards?|films?|"
    r"movies?|albums?|prime minister|president|government|parliament|stocks?|shares?|inflation|"
    r"(?:interest|exchange) rates?|earthquakes?|storms?|hurricanes?|wars?|strikes?)\b|"
    r"\b(?:happen(?:s|ed|ing)?|going on) in the (?:world|news|country|capital)\b",
    re.IGNORECASE,
)
_THERE = re.compile(r"\b(?:happen(?:s|ed|ing)?|going on) in [A-Z]\w+")

# Forms of questions and requests; statements do not match.
_ASKS = re.compile(
    r"^\W*(?:and |so |then |please )?(?:what|who|whom|whose|which|when|where|why|how|any|is|are|was|were|has|have|do|"
    r"does|did|can|could|will|search|look up|google|find|give|tell|show)\b|\?[\"'”’)\]]*$",
    re.IGNORECASE,
)
_POLITE = re.compile(r"\b(?:tell|show|give|get|find) (?:me|us)\b|\bcan i (?:get|have)\b", re.IGNORECASE)
_PERSON = r"\b(?:i|i['’](?:m|ve|ll|d)|we|we['’](?:re|ve|ll|d)|my|mine|our|ours|me|us)\b"
_SAID = r"\b(?:sa(?:y|ys|id)|tells?|told|mention(?:s|ed)?|asked|promised?|decided?|agreed?|discuss(?:ed)?|remember)\b"
# Dates, times of day, long numbers, addresses: pasted or private text.
_PASTED = r"\b\d{4}-\d\d?-\d\d?\b|\b\d\d?:\d\d\b|(?:\d[ -]?){6}|\S@\S|://|[\\{}<>=|`]|\b(?:ERROR|WARN(?:ING)?|DEBUG)\b"
_PRIVATE = re.compile(f"{_PERSON}|{_SAID}|{_PASTED}", re.IGNORECASE)

_PLAIN, _DAYS, _LATEST = (re.compile(pattern, re.IGNORECASE) for pattern in (_NEWS, _WHEN, _NEWEST))
_LOCAL = re.compile("|".join((_OWN_THING, _TOLD, _OWN)), re.IGNORECASE)


def find_news_questions(text: str, *, now: datetime) -> str:
    """Return the sentences of an input that ask for current events, as one text; empty if there are none.

    >>> at = datetime(2026, 11, 21)
    >>> texts = ("Ana is ill. What is the latest Python release?", "Ana is ill today.")
    >>> tuple(find_news_questions(text, now=at) for text in texts)
    ('What is the latest Python release?', '')
    """
    return " ".join(
        s
        for s in split_sentences(text)
        if len(s) <= MAX_SENTENCE_CHARS and _asks_for_news(_POLITE.sub("tell", s), now.year)
    )


def _asks_for_news(sentence: str, year: int) -> bool:
    if not _ASKS.search(sentence) or _PRIVATE.search(sentence.removeprefix("tell")):
        return False
    if _PLAIN.search(sentence) or _LATEST.search(_LOCAL.sub(" ", sentence)):
        return True
    has_year = any(year <= int(hit[1] or hit[2]) <= year + MAX_YEARS_AHEAD for hit in _YEAR.finditer(sentence))
    is_current = has_year or _DAYS.search(sentence)
    return bool(is_current and (_WORLD.search(sentence) or _THERE.search(sentence)))


ORIGIN = "web search"
WEB_SECONDS = 5.0  # for a search, which the other sources of a context wait for
MAX_URL_CHARS = 80  # shown in the text


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSource:
    """Searches the web for inputs that ask for current events, and stores the results."""

    search: "WebSearch"
    db: Database
    count_tokens: TokenCounter

    def should_search(self, request: ContextBuildRequest, *, now: datetime) -> bool:
        """Return True for an input of a session that asks for current events.

        Return False if the context is for a past moment, its filters exclude artifacts, or the input has a code.
        """
        present = request.session_id is not None and request.as_of is None
        return present and request.filters.allows_kind("artifact") and self._asks_for_news(request.input, now)

    def _asks_for_news(self, text: str, now: datetime) -> bool:
        questions = find_news_questions(text, now=now) if is_searchable(text) else ""
        return bool(questions) and not find_labelled_secrets(questions)

    async def search_and_store(self, request: ContextBuildRequest, *, now: datetime) -> None:
        """Search the web and store the results as artifacts of the session.

        Only the sentences that ask for current events are sent. Raises ProviderError when the search fails.
        """
        assert request.session_id is not None, "the web is searched within a session only"
        assert not in_transaction()
        results = await self.search.search(clean_model_text(find_news_questions(request.input, now=now)))
        ctx = WriteContext(
            agent_id=request.agent_id, now=now, origin=ORIGIN, trust="web", count_tokens=self.count_tokens
        )
        writer = ArtifactWriter(session_id=request.session_id, ctx=ctx)
        async with self.db.transaction(request.agent_id) as tx:
            await writer.add_excerpts(tx, [_to_artifact(result, n, now=now) for n, result in enumerate(results)])


def _to_artifact(result: "WebResult", index: int, *, now: datetime) -> Artifact:
    """Convert a search result to an artifact, with the current time and the URL."""
    source = clean_model_text(result.url)
    shown_url = source if len(source) <= MAX_URL_CHARS else f"{source[:MAX_URL_CHARS]}…"
    parts = filter(None, (result.title, result.published and f"({result.published})", result.text))
    return Artifact(
        type="tools",
        prefix=f"[{now:%Y-%m-%d %H:%M}] from the web ({shown_url}): ",
        text=clean_model_text(" ".join(parts)),
        max_tokens=SUMMARY_TOKENS,
        occurred_at=now,
        trust="web",
        key=("web", f"{now:%Y-%m-%d}", result.url, result.text),
        index=index,
        source=source,
    )
