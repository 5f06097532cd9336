"""Recorder of artifacts: finds, stores and shortens long outputs, pasted texts and written files in new messages."""

import heapq
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import NamedTuple, cast
from uuid import UUID

from newton.db.pool import Tx
from newton.dialogue import artifact_store
from newton.dialogue.artifact_store import ArtifactKind, NewArtifact
from newton.dialogue.artifact_text import (
    content_stems,
    guess_media_type,
    iter_stems,
    list_lines,
    make_name,
    mask_variables,
    rank_unusual_lines,
)
from newton.dialogue.messages import Message, StoredMessage, describe_call
from newton.memory.memory import TokenCounter, WriteContext
from newton.memory.redaction.redactor import redact_secrets
from newton.memory.representations import ELLIPSIS
from newton.providers.chat import ToolCall
from newton.text.sentences import ERROR_PATTERN

MAX_LINE_CHARS = 300  # of a line in a digest
HEAD_SHARE, TAIL_SHARE = 0.15, 0.2  # of the tokens of a digest; the lines that matter get the rest
REQUEST_WEIGHT, ERROR_WEIGHT = 3.0, 1.0  # of a word of the request that a single line has, and of an error
MIN_LINE_TOKENS = 8
REQUEST_CHARS = 400  # of the beginning and of the end of a pasted text, where a person writes the request


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestInput:
    """The input of a digest, the short form of an artifact in a prompt: its lines, and the request.

    `request` is the message of the user that the text serves; words of it decide which lines are shown.
    """

    name: str
    version: int
    lines: Sequence[str]
    byte_count: int
    request: str = ""


def render_digest(digest: DigestInput, *, max_tokens: int, count_tokens: TokenCounter) -> str:
    """Return the short form of a text for a prompt: a heading, then its first, last and most relevant lines, numbered.

    It has at most `max_tokens`, unless the heading alone has more.
    """
    heading = (
        f"[Artifact {digest.name}, version {digest.version}: {len(digest.lines):,} lines,"
        f" {digest.byte_count:,} bytes, stored whole. Here are its beginning, its end, and lines that may matter."
        f" `read_artifact` returns other lines, or those that a search finds.]"
    )
    left = max_tokens - count_tokens(heading + "\n")
    total = len(digest.lines)
    head = _take(digest, range(total), int(left * HEAD_SHARE), count_tokens)
    tail = _take(digest, range(total - 1, len(head) - 1, -1), int(left * TAIL_SHARE), count_tokens)
    between = range(len(head), total - len(tail))
    used = sum(_cost(digest, index, count_tokens) for index in (*head, *tail))
    ranked = _rank_lines(digest, between, limit=max(left, 0))
    chosen = sorted({*head, *tail, *_take(digest, ranked, left - used, count_tokens, skips=True)})
    return "\n".join([heading, *_render_lines(digest, chosen)])


def find_request(text: str) -> str:
    """Return the beginning and the end of a pasted text, where a person states the purpose of the text."""
    return text if len(text) <= 2 * REQUEST_CHARS else f"{text[:REQUEST_CHARS]}\n{text[-REQUEST_CHARS:]}"


def _render_lines(digest: DigestInput, chosen: Sequence[int]) -> Iterable[str]:
    before = -1
    for index in chosen:
        if index > before + 1:
            yield ELLIPSIS.strip()
        yield _render_line(digest, index)
        before = index


def _render_line(digest: DigestInput, index: int) -> str:
    line = digest.lines[index].rstrip()
    short = line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS].rstrip() + ELLIPSIS
    return f"{index + 1}| {short}"


def _cost(digest: DigestInput, index: int, count_tokens: TokenCounter) -> int:
    return count_tokens(_render_line(digest, index) + "\n") + 1  # the ellipsis before it


def _take(
    digest: DigestInput, indexes: Iterable[int], max_tokens: int, count_tokens: TokenCounter, *, skips: bool = False
) -> list[int]:
    """Return the indexes of the first of these lines that fit into `max_tokens`.

    With `skips`, pass over a line that does not fit; else end there.
    """
    taken: list[int] = []
    left = max_tokens
    for index in indexes:
        cost = _cost(digest, index, count_tokens)
        if cost <= left:
            taken.append(index)
            left -= cost
        elif not skips or left < MIN_LINE_TOKENS:
            break
    return taken


def _rank_lines(digest: DigestInput, between: range, *, limit: int) -> list[int]:
    """Return up to 2 * `limit` line indexes to show: alternately a line relevant to the request and an unusual one."""
    relevant = _rank_relevant(digest, between, limit=limit)
    unusual = [number - 1 for number in rank_unusual_lines(digest.lines)[:limit] if number - 1 in between]
    pairs = chain.from_iterable(zip_longest(relevant, unusual))
    return list(dict.fromkeys(index for index in pairs if index is not None))


def _rank_relevant(digest: DigestInput, between: range, *, limit: int) -> list[int]:
    """Return the indexes of lines with errors or words of the request, best first; rare words count more."""
    wanted = content_stems(digest.request)
    templates = [mask_variables(line) for line in digest.lines]
    counts = Counter(templates)
    found_in = {template: wanted.intersection(iter_stems(template)) for template in counts} if wanted else {}
    frequency = Counter[str]()
    for template, found in found_in.items():
        frequency.update(dict.fromkeys(found, counts[template]))
    scores: dict[int, float] = {}
    seen = Counter[str]()
    for index in between:
        line, template = digest.lines[index], templates[index]
        score = REQUEST_WEIGHT * sum(
            math.log(1 + len(templates) / frequency[stem]) / math.log(1 + len(templates))
            for stem in found_in.get(template, ())
        )
        score += ERROR_WEIGHT if ERROR_PATTERN.search(line[:MAX_LINE_CHARS]) else 0
        if score:
            seen[template] += 1
            scores[index] = score / seen[template]  # the first line of each template before its repetitions
    return heapq.nsmallest(limit, scores, key=lambda index: (-scores[index], index))


PATH_FIELDS = ("path", "file_path", "filePath", "filename", "file", "target_file")
CONTENT_FIELDS = ("content", "contents", "file_text", "code", "new_content", "text")
OLD_FIELDS, NEW_FIELDS = ("old_string", "old_str", "oldText", "search"), ("new_string", "new_str", "newText", "replace")
MAX_PATH_CHARS = 150

_WRITES = re.compile(r"write|create|save|edit|replace|update|put|patch", re.IGNORECASE)
_FAILED = re.compile(r"\s*(?:error|failed|failure|traceback|permission denied|no such file|\{\"error\")", re.IGNORECASE)
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)$", re.MULTILINE)
_FILE = r"[\w@+-][\w./@+-]*\.[A-Za-z]\w{0,9}"
_INFO_NAME = re.compile(rf"(?:(?:title|file|filename|name|path)=)?[\"']?(?:\w+:)?(?P<name>{_FILE})[\"']?\s*$")
_LABEL_LINE = re.compile(
    rf"\s*(?:#+\s*|[-*]\s+)?(?:file:?\s*)?[`*\"']*(?P<name>{_FILE})[`*\"']*\s*:?\s*", re.IGNORECASE
)
_COMMENT_NAME = re.compile(
    rf"\s*(?:#|//|--|;|/\*|<!--)\s*(?:file:?\s*)?(?P<name>{_FILE})\s*(?:\*/|-->)?\s*", re.IGNORECASE
)


class WrittenFile(NamedTuple):
    """A file with its new `text`, or (if None) an edit that replaces the only occurrence of `old` by `new`."""

    name: str
    text: str | None = None
    old: str = ""
    new: str = ""


def find_written_file(call: ToolCall, result: str) -> WrittenFile | None:
    """Return the file that a tool call wrote; None if it wrote none, or if the result reports a failure.

    >>> find_written_file(ToolCall("1", "write_file", '{"path": "a.py", "content": "x = 1"}'), "ok")
    WrittenFile(name='a.py', text='x = 1', old='', new='')
    """
    fields = _parse_arguments(call.arguments)
    path = _first_text(fields, PATH_FIELDS)
    command = fields.get("command")
    names_write = _WRITES.search(call.name) or (isinstance(command, str) and _WRITES.search(command[:40]))
    if not path or len(path) > MAX_PATH_CHARS or "\n" in path or not names_write or _FAILED.match(result):
        return None
    old, new = _first_text(fields, OLD_FIELDS), _first_text(fields, NEW_FIELDS)
    if old and new is not None:
        return WrittenFile(path, None, old, new)
    text = _first_text(fields, CONTENT_FIELDS)
    return WrittenFile(path, text) if text else None


def apply_edit(text: str, edit: WrittenFile) -> str | None:
    """Return the text after an edit; None if the replaced text does not occur exactly once."""
    return text.replace(edit.old, edit.new) if text.count(edit.old) == 1 else None


def find_code_blocks(reply: str) -> Iterator[WrittenFile]:
    """Yield the code blocks of a reply that have a file name: in the fence, on the line before, or in a first comment.

    >>> list(find_code_blocks("Here:\\n```python title=app.py\\nx = 1\\n```"))
    [WrittenFile(name='app.py', text='x = 1\\n', old='', new='')]
    """
    position = 0
    while opening := _FENCE.search(reply, position):
        closing = re.compile(rf"^ {{0,3}}{re.escape(opening['fence'])}[`~]*\s*$", re.MULTILINE).search(
            reply, opening.end()
        )
        if closing is None:
            return
        text = reply[opening.end() + 1 : closing.start()]
        before = reply[position : opening.start()].rstrip().rpartition("\n")[2]
        if text.strip() and (name := _find_name(opening["info"], before, text)):
            yield WrittenFile(name, text)
        position = closing.end()


def _find_name(info: str, before: str, text: str) -> str | None:
    matches = (
        _INFO_NAME.search(info.strip()),
        _LABEL_LINE.fullmatch(before),
        _COMMENT_NAME.fullmatch(text.partition("\n")[0]),
    )
    return next((match["name"] for match in matches if match and len(match["name"]) <= MAX_PATH_CHARS), None)


def _parse_arguments(arguments: str) -> Mapping[str, object]:
    try:
        value: object = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _first_text(fields: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str)), None)


# Texts with at least so many tokens become artifacts: tool outputs, and messages of people and models.
OUTPUT_TOKENS, TEXT_TOKENS = 1_000, 2_000
MAX_REQUEST_CHARS = 4_000
TEXT_LABELS = {"user": "pasted-text", "assistant": "reply", "system": "instructions"}


@dataclass(slots=True)
class NewArtifacts:
    """The artifacts (long texts to store whole) found in new messages.

    `long_texts` are the long messages, each with its artifact and the request that it serves. `request` is the last
    message of the user; None if it was not read yet.
    """

    artifacts: list[NewArtifact] = field(default_factory=list[NewArtifact])
    long_texts: list[tuple[StoredMessage, NewArtifact, str]] = field(
        default_factory=list[tuple[StoredMessage, NewArtifact, str]]
    )
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRecorder:
    """Finds and stores the artifacts of one session: long outputs, pasted texts and written files in new messages."""

    session_id: UUID
    ctx: WriteContext

    async def find_new(self, tx: Tx, messages: Sequence[StoredMessage], calls: Mapping[str, ToolCall]) -> NewArtifacts:
        """Return the artifacts that messages contain, without storing them. `calls` are tool calls by their ids."""
        new = NewArtifacts()
        for item in messages:
            if not item.message.is_notice:
                await self._collect(tx, item, calls, new)
        return new

    async def store(self, tx: Tx, new: NewArtifacts) -> dict[int, DigestInput]:
        """Store artifacts; return what the short forms (digests) of long messages are made from, by their positions.

        The caller must hold the session lock.
        """
        if not new.artifacts:
            return {}
        stored = await artifact_store.add(tx, new.artifacts, session_id=self.session_id, ctx=self.ctx)
        versions = {id(artifact): version for artifact, version in stored}
        return {
            item.position: DigestInput(
                name=artifact.name,
                version=versions[id(artifact)],
                lines=list_lines(item.message.content),
                byte_count=len(item.message.content.encode()),
                request=request,
            )
            for item, artifact, request in new.long_texts
        }

    async def _collect(self, tx: Tx, item: StoredMessage, calls: Mapping[str, ToolCall], new: NewArtifacts) -> None:
        """Add the artifacts of a message to `new`."""
        message = item.message
        if is_long(item):
            request = find_request(message.content)
            if message.role == "tool":
                if new.request is None:
                    new.request = await self._find_last_request(tx, item.position)
                request = new.request
            new.artifacts.append(_to_artifact(item, calls))
            new.long_texts.append((item, new.artifacts[-1], request))
        for file in _find_files(message, calls):
            if written := await self._to_file(tx, item, file, new.artifacts, calls):
                new.artifacts.append(written)
        if message.role == "user":
            new.request = message.content[:MAX_REQUEST_CHARS]

    async def _find_last_request(self, tx: Tx, position: int) -> str:
        return await artifact_store.find_last_request(
            tx, agent_id=self.ctx.agent_id, session_id=self.session_id, position=position
        )

    async def _to_file(
        self,
        tx: Tx,
        item: StoredMessage,
        file: WrittenFile,
        earlier: Sequence[NewArtifact],
        calls: Mapping[str, ToolCall],
    ) -> NewArtifact | None:
        """Return the artifact of a written file; None for an empty text and for an edit of an unknown version.

        `earlier` are artifacts that are stored in the same step.
        """
        text, name = file.text, make_name(file.name)
        if text is None:
            known = next((one.text for one in reversed(earlier) if one.name == name), None)
            latest = known or await self._load_latest(tx, name)
            text = apply_edit(latest, file) if latest else None
        if not text or not text.strip():
            return None
        # the text may be invalid where it comes from the JSON of a call, and keeps its first indentation
        cleaned = redact_secrets(text.replace("\0", "").encode("utf-8", "replace").decode())
        call = calls.get(item.message.tool_call_id or "")
        return NewArtifact(
            name=name,
            kind="file",
            media_type=guess_media_type(name, cleaned),
            trust=item.message.trust,
            text=cleaned,
            position=item.position,
            source=describe_call(call) if call else None,
        )

    async def _load_latest(self, tx: Tx, name: str) -> str | None:
        agent_id = self.ctx.agent_id
        versions = await artifact_store.list_versions(tx, agent_id=agent_id, session_id=self.session_id, name=name)
        if not versions:
            return None
        return await artifact_store.read_text(tx, versions[0].artifact_id, agent_id=agent_id)


def is_long(item: StoredMessage) -> bool:
    """Return whether a message has so many tokens that its text is stored as an artifact."""
    return bool(item.message.content) and item.tokens >= (OUTPUT_TOKENS if item.message.role == "tool" else TEXT_TOKENS)


def _find_files(message: Message, calls: Mapping[str, ToolCall]) -> Iterator[WrittenFile]:
    if message.role == "assistant":
        yield from find_code_blocks(message.content)
    call = calls.get(message.tool_call_id or "")
    written = find_written_file(call, message.content) if call else None
    if written:
        yield written


def _to_artifact(item: StoredMessage, calls: Mapping[str, ToolCall]) -> NewArtifact:
    """Return the artifact of a long message, named after its tool call or its role and position."""
    message = item.message
    call = calls.get(message.tool_call_id or "")
    kind: ArtifactKind = "output" if message.role == "tool" else "paste"
    source = describe_call(call) if call else message.name
    if kind == "output":
        name = make_name(source or "tool", suffix=".out")
    else:
        name = f"{TEXT_LABELS[message.role]}-{item.position}.txt"
    return NewArtifact(
        name=name,
        kind=kind,
        media_type=guess_media_type(name.removesuffix(".out").removesuffix(".txt"), message.content),
        trust=message.trust,
        text=message.content,
        position=item.position,
        source=source,
    )
