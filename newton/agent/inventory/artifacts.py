"""Artifacts of sessions: long tool outputs, pasted texts, files and uploads, read by lines or by a search."""

import asyncio
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import UUID

from pydantic import computed_field

from newton.agent.scope import AgentScope
from newton.agent.services.sessions import get_or_create_session
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import artifact_store, log, sessions
from newton.dialogue.artifact_store import (
    MAX_UPLOAD_CHARS,
    ArtifactVersion,
    LineSpan,
    NewArtifact,
    SimilarLine,
    group_lines,
    rank_lines,
)
from newton.dialogue.artifact_text import TABLE_DELIMITERS, guess_media_type, parse_line_range
from newton.errors import InputError, NotFoundError, ProviderError
from newton.ids import derive_model_id
from newton.memory import hygiene
from newton.memory.memory import Trust
from newton.memory.redaction.tally import Redactions, count_redactions
from newton.memory.representations import ELLIPSIS
from newton.memory.vectors import read_active_model

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.agent.inventory", "artifacts.sql")

PAGE_CHARS, PAGE_LINES = 8_000, 400  # of one page
MAX_FOUND_CHARS = 600  # of a line in the result of a search; `lines` reads all of it
PASSAGES_PER_READ = 120  # read for one page of a search
MAX_DIFF_LINES = 20_000  # of each version; the time of a diff grows with the square
MAX_FOUND_LINES = 400  # of a search, on all pages


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactLines:
    """Consecutive lines of an artifact from `first_line` on. `found_lines` are the numbers of those a search found."""

    name: str
    version: int
    first_line: int
    found_lines: Sequence[int] = ()
    lines: Sequence[str]

    @computed_field
    @property
    def last_line(self) -> int:
        return self.first_line + len(self.lines) - 1

    @property
    def size(self) -> int:
        return sum(map(len, self.lines)) + len(self.lines)

    def number_lines(self) -> Iterator[str]:
        """Yield each line after its number; `>` marks a found line."""
        for number, line in enumerate(self.lines, self.first_line):
            yield f"{number}{'>' if number in self.found_lines else '|'} {line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedArtifact:
    """The stored version of an upload, and the number of secrets of each kind that were removed from it."""

    version: int
    media_type: str
    line_count: int
    byte_count: int
    sha256: str
    trust: Trust
    redacted: Redactions


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactPage:
    """A page of passages of artifacts (long texts of a session), and the artifacts that they are from.

    The next page is read with `lines` set to `next_lines`, or after a search with `offset` set to `next_offset`; both
    are null on the last page. `missing` is why the search was by words only.
    """

    artifacts: Sequence[ArtifactVersion]
    passages: Sequence[ArtifactLines]
    next_lines: str | None = None
    next_offset: int | None = None
    missing: str | None = None

    def render(self) -> str:
        """Return the passages as numbered lines, each artifact under its name if there are several."""
        return "\n".join(self._render_passages())

    def _render_passages(self) -> Iterator[str]:
        before: ArtifactLines | None = None
        for passage in self.passages:
            is_same = before is not None and (before.name, before.version) == (passage.name, passage.version)
            if len(self.artifacts) > 1 and not is_same:
                yield f"[{passage.name}]"
            elif before is not None:
                yield "…"
            yield from passage.number_lines()
            before = passage


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactReadQuery:
    """A request to read the artifacts of a session: `lines`, the lines that a `search` finds, or the beginning."""

    name: str | None = None
    lines: str | None = None
    search: str | None = None
    version: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactService:
    """Artifacts of the sessions of one agent. A session is identified by its id, or by its name (`ref`)."""

    scope: AgentScope

    def with_trust(self, trust: Trust) -> "ArtifactService":
        """Return a copy whose uploads get this trust."""
        return replace(self, scope=replace(self.scope, trust=trust))

    async def find_session(self, ref: str | None) -> UUID:
        """Return the id of the session named `ref`; for None, of the session in which an artifact was stored last.

        Raises NotFoundError if there is none.
        """
        async with self.scope.transaction() as tx:
            if ref is not None:
                return await sessions.get_session_id(tx, agent_id=self.scope.agent_id, ref=ref)
            if session_id := await artifact_store.find_last_session(tx, agent_id=self.scope.agent_id):
                return session_id
        hint = (
            "Long tool outputs and pasted texts become artifacts; `newton artifacts add FILE --session NAME` adds one."
        )
        raise NotFoundError("There are no artifacts.", hint=hint)

    async def list_versions(self, session_id: UUID, *, name: str | None = None) -> list[ArtifactVersion]:
        """Return all versions of the artifacts of a session, or of one artifact, the newest first."""
        async with self.scope.transaction() as tx:
            return await self._list(tx, session_id, name)

    async def list_latest(self, session_id: UUID) -> list[ArtifactVersion]:
        """Return the latest version of each artifact of a session, the newest first."""
        return _latest(await self.list_versions(session_id))

    async def get(self, session_id: UUID, name: str, version: int | None = None) -> ArtifactVersion:
        """Return a version of an artifact, by default the latest. Raises NotFoundError with similar names."""
        async with self.scope.transaction() as tx:
            return await self._get(tx, session_id, name, version)

    async def read(self, session_id: UUID, query: ArtifactReadQuery) -> ArtifactPage:
        """Return a page of lines. Raises NotFoundError for an unknown artifact, and InputError for a wrong range."""
        if query.search:
            return await self._search(session_id, query, query.search)
        if query.name is None:
            raise InputError("Neither a name nor a search is given.", hint="Give the name of an artifact, or a search.")
        async with self.scope.transaction() as tx:
            artifact = _require_text(await self._get(tx, session_id, query.name, query.version))
            wanted = parse_line_range(query.lines or "1-", line_count=artifact.line_count)
            last = min(wanted.last or artifact.line_count, artifact.line_count)
            end = min(last, wanted.first + PAGE_LINES - 1)
            (passage,) = await self._read_passages(tx, [LineSpan(artifact.artifact_id, wanted.first, end)], [artifact])
        shown = _limit_size(passage, PAGE_CHARS)
        following = f"{shown.last_line + 1}-{last}" if shown.last_line < last else None
        return ArtifactPage(artifacts=[artifact], passages=[shown], next_lines=following)

    async def read_text(self, session_id: UUID, name: str, version: int | None = None) -> tuple[ArtifactVersion, str]:
        """Return a version of an artifact with its whole text.

        Raises NotFoundError if there is none, and InputError for a binary.
        """
        async with self.scope.transaction() as tx:
            artifact = _require_text(await self._get(tx, session_id, name, version))
            return artifact, await artifact_store.read_text(tx, artifact.artifact_id, agent_id=self.scope.agent_id)

    async def diff(self, session_id: UUID, name: str, *, old: int | None = None, new: int | None = None) -> str:
        """Return a unified diff of two versions, by default of the latest and the one before it; "" if they are equal.

        Raises NotFoundError for an unknown version, and InputError if one is too long to compare.
        """
        async with self.scope.transaction() as tx:
            second = _require_text(await self._get(tx, session_id, name, new))
            if old is None and second.version == 1:
                raise InputError(f"{name!r} has only one version.", hint="`newton artifacts list` shows the versions.")
            first = _require_text(await self._get(tx, session_id, name, second.version - 1 if old is None else old))
            if (longest := max(first.line_count, second.line_count)) > MAX_DIFF_LINES:
                what = f"A version of {name!r} has {longest:,} lines; at most {MAX_DIFF_LINES:,} can be compared."
                raise InputError(what, hint="Save both versions with `newton artifacts save` and compare the files.")
            agent_id, ids = self.scope.agent_id, (first.artifact_id, second.artifact_id)
            texts = [(await artifact_store.read_text(tx, one, agent_id=agent_id)).splitlines() for one in ids]
        labels = [f"{name} version {one.version}" for one in (first, second)]
        return await asyncio.to_thread(_diff, texts, labels)

    async def add(self, session_ref: str, name: str, content: str, *, media_type: str | None = None) -> AddedArtifact:
        """Store a text as an artifact of a session, which is created if needed; return the stored version.

        Secrets are removed. Raises InputError for an empty or too long text.
        """
        name = hygiene.clean_ref(name, what="name of the artifact")
        text = hygiene.clean_text(content, what="artifact", max_chars=MAX_UPLOAD_CHARS)
        artifact = NewArtifact(
            name=name,
            kind="upload",
            media_type=media_type or guess_media_type(name, text),
            trust=self.scope.trust,
            text=text,
        )
        return await self._add(session_ref, artifact, count_redactions(text))

    async def add_reference(
        self, session_ref: str, name: str, *, media_type: str, byte_count: int, sha256: bytes
    ) -> AddedArtifact:
        """Store the name, size, hash and media type of a binary, not its content; return the stored version."""
        artifact = NewArtifact(
            name=hygiene.clean_ref(name, what="name of the artifact"),
            kind="attachment",
            media_type=hygiene.clean_name(media_type, what="media type"),
            trust=self.scope.trust,
            text=None,
            byte_count=byte_count,
            sha256=sha256,
        )
        return await self._add(session_ref, artifact, {})

    async def delete(self, session_id: UUID, name: str, *, version: int | None = None, reason: str) -> int:
        """Permanently delete an artifact, or one version of it; return the number of versions deleted.

        The message that contains the text stays. Raises NotFoundError if there is no such artifact or version.
        """
        async with self.scope.write() as (tx, ctx):
            await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
            await self._get(tx, session_id, name, version)
            versions = await self._list(tx, session_id, name)
            ids = [one.artifact_id for one in versions if version in (None, one.version)]
            record = {"now": ctx.now, "reason": hygiene.clean_text(reason, what="reason"), "origin": ctx.origin}
            await SQL["record_deletion"].execute(tx, agent_id=ctx.agent_id, ids=ids, **record)
            await SQL["delete_recorded"].execute(tx, agent_id=ctx.agent_id, ids=ids)
            self.scope.publish("artifact.deleted", {"session_id": str(session_id), "versions": len(ids)})
            return len(ids)

    async def _add(self, session_ref: str, artifact: NewArtifact, redacted: Redactions) -> AddedArtifact:
        async with self.scope.write() as (tx, ctx):
            session_id = await get_or_create_session(tx, session_ref, agent_id=ctx.agent_id, now=ctx.now)
            await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
            ((_, version),) = await artifact_store.add(tx, [artifact], session_id=session_id, ctx=ctx)
            self.scope.publish("artifact.stored", {"session_id": str(session_id), "version": version})
            stored = await self._get(tx, session_id, artifact.name, version)
        return AddedArtifact(
            version=version,
            media_type=stored.media_type,
            line_count=stored.line_count,
            byte_count=stored.byte_count,
            sha256=stored.sha256,
            trust=stored.trust,
            redacted=redacted,
        )

    async def _list(self, tx: Tx, session_id: UUID, name: str | None) -> list[ArtifactVersion]:
        return await artifact_store.list_versions(tx, agent_id=self.scope.agent_id, session_id=session_id, name=name)

    async def _get(self, tx: Tx, session_id: UUID, name: str, version: int | None) -> ArtifactVersion:
        versions = await self._list(tx, session_id, name)
        if found := next((one for one in versions if version in (None, one.version)), None):
            return found
        if versions:
            numbers = ", ".join(str(one.version) for one in reversed(versions))
            raise NotFoundError(f"{name!r} has no version {version}.", hint=f"Its versions are {numbers}.")
        known = list(dict.fromkeys(one.name for one in await self._list(tx, session_id, None)))
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        named = ", ".join(close or known[:5])
        hint = f"Its artifacts are {named}." if named else "The session has no artifacts."
        raise NotFoundError(f"The session has no artifact {name!r}.", hint=hint)

    async def _read_passages(
        self, tx: Tx, spans: Sequence[LineSpan], artifacts: Sequence[ArtifactVersion]
    ) -> list[ArtifactLines]:
        by_id = {one.artifact_id: one for one in artifacts}
        found = await artifact_store.read_ranges(tx, spans, agent_id=self.scope.agent_id)
        return [
            ArtifactLines(
                name=by_id[span.artifact_id].name,
                version=by_id[span.artifact_id].version,
                first_line=span.first,
                found_lines=span.found,
                lines=lines,
            )
            for span, lines in zip(spans, found, strict=True)
        ]

    async def _search(self, session_id: UUID, query: ArtifactReadQuery, search: str) -> ArtifactPage:
        """Return the lines that a search finds: in one artifact, or in the latest versions of all of a session."""
        vector, model_id, missing = await self._embed(search)
        async with self.scope.transaction() as tx:
            if query.name is None:
                artifacts = [one for one in _latest(await self._list(tx, session_id, None)) if one.is_text]
            else:
                artifacts = [_require_text(await self._get(tx, session_id, query.name, query.version))]
            agent_id, ids = self.scope.agent_id, [one.artifact_id for one in artifacts]
            matches = await artifact_store.search_lines(tx, ids, search, agent_id=agent_id)
            similar: list[SimilarLine] = []
            if vector is not None and model_id:
                similar = await artifact_store.search_vectors(tx, ids, vector, model_id=model_id, agent_id=agent_id)
            line_counts = {one.artifact_id: one.line_count for one in artifacts}
            spans = group_lines(rank_lines(matches, similar)[:MAX_FOUND_LINES], line_counts)
            return replace(await self._read_found(tx, spans, artifacts, query.offset), missing=missing)

    async def _read_found(
        self, tx: Tx, spans: Sequence[LineSpan], artifacts: Sequence[ArtifactVersion], offset: int
    ) -> ArtifactPage:
        """Return as many of the found passages from `offset` on as fit into a page, after the headers of tables."""
        chosen = spans[offset : offset + PASSAGES_PER_READ]
        tables = [
            one for one in artifacts
            if one.media_type in TABLE_DELIMITERS and any(span.artifact_id == one.artifact_id for span in chosen)
        ]  # fmt: skip
        headers = [LineSpan(one.artifact_id, 1, 1) for one in tables]
        passages = [_shorten(one) for one in await self._read_passages(tx, [*headers, *chosen], artifacts)]
        shown, left = passages[: len(headers)], PAGE_CHARS
        for passage in passages[len(headers) :]:
            left -= passage.size
            if left < 0 and len(shown) > len(headers):
                break
            shown.append(passage)
        following = offset + len(shown) - len(headers)
        named = {(one.name, one.version) for one in shown}
        return ArtifactPage(
            artifacts=[one for one in artifacts if (one.name, one.version) in named],
            passages=shown,
            next_offset=following if following < len(spans) else None,
        )

    async def _embed(self, search: str) -> "tuple[Vector | None, UUID | None, str | None]":
        """Return the vector of a search and its model, or why there is none."""
        embedder = self.scope.embedder
        if embedder is None:
            return None, None, "no embedding model is set"
        async with self.scope.transaction() as tx:
            active = await read_active_model(tx, agent_id=self.scope.agent_id)
        if active not in (None, embedder.identity):
            return None, None, f"the active embedding model is {active}"
        try:
            (vector,) = await embedder.embed([search])
        except ProviderError as error:
            return None, None, error.what
        return vector, derive_model_id(embedder.identity), None


def _latest(versions: Sequence[ArtifactVersion]) -> list[ArtifactVersion]:
    """Return the first version of each name in the list, which is the latest."""
    latest: dict[str, ArtifactVersion] = {}
    for one in versions:
        latest.setdefault(one.name, one)
    return list(latest.values())


def _require_text(artifact: ArtifactVersion) -> ArtifactVersion:
    if not artifact.is_text:
        what = (
            f"{artifact.name!r} is a binary ({artifact.media_type}, {artifact.byte_count:,} bytes); it is not stored."
        )
        raise InputError(what, hint="Newton keeps only its size and hash. Look for it where it came from.")
    return artifact


def _limit_size(passage: ArtifactLines, max_chars: int) -> ArtifactLines:
    """Return the first lines that have at most `max_chars`, and at least one line."""
    end, left = 0, max_chars
    for line in passage.lines:
        left -= len(line) + 1
        if left < 0 and end:
            break
        end += 1
    return replace(passage, lines=passage.lines[:end])


def _shorten(passage: ArtifactLines) -> ArtifactLines:
    lines = [line if len(line) <= MAX_FOUND_CHARS else line[:MAX_FOUND_CHARS] + ELLIPSIS for line in passage.lines]
    return replace(passage, lines=lines)


def _diff(texts: Sequence[Sequence[str]], labels: Sequence[str]) -> str:
    old, new = texts
    old_label, new_label = labels
    return "\n".join(difflib.unified_diff(old, new, old_label, new_label, lineterm=""))
