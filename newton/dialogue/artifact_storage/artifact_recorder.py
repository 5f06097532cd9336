"""Storage of the artifacts of new messages: long outputs and pasted texts, files that tools wrote, code blocks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from newton.db.pool import Tx
from newton.dialogue.artifact_storage import artifact_store
from newton.dialogue.artifact_storage.artifact_digest import DigestInput, find_request
from newton.dialogue.artifact_storage.artifact_store import ArtifactKind, NewArtifact
from newton.dialogue.artifact_storage.artifact_text import guess_media_type, list_lines, make_name
from newton.dialogue.artifact_storage.written_files import WrittenFile, apply_edit, find_code_blocks, find_written_file
from newton.dialogue.messages import Message, StoredMessage, describe_call
from newton.memory.memory import WriteContext
from newton.memory.redaction.redactor import redact_secrets
from newton.providers.chat import ToolCall

# Texts with at least so many tokens become artifacts: tool outputs, and messages of people and models.
OUTPUT_TOKENS, TEXT_TOKENS = 1_000, 2_000
MAX_REQUEST_CHARS = 4_000
TEXT_LABELS = {"user": "pasted-text", "assistant": "reply", "system": "instructions"}


@dataclass(slots=True)
class NewArtifacts:
    """The artifacts of new messages. `long_texts` are long messages with their artifacts and requests.

    `request` is the last message of the user; None if it was not read yet.
    """

    artifacts: list[NewArtifact] = field(default_factory=list[NewArtifact])
    long_texts: list[tuple[StoredMessage, NewArtifact, str]] = field(
        default_factory=list[tuple[StoredMessage, NewArtifact, str]]
    )
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRecorder:
    """Stores the artifacts that the new messages of one session contain."""

    session_id: UUID
    ctx: WriteContext

    async def find_new(self, tx: Tx, messages: Sequence[StoredMessage], calls: Mapping[str, ToolCall]) -> NewArtifacts:
        """Return the artifacts that messages contain. `calls` maps call ids to calls."""
        new = NewArtifacts()
        for item in messages:
            if not item.message.is_notice:
                await self._collect(tx, item, calls, new)
        return new

    async def store(self, tx: Tx, new: NewArtifacts) -> dict[int, DigestInput]:
        """Store artifacts; return the inputs of the digests of long texts, by position.

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
        """Return the artifact of a written file; None for an edit whose earlier version is not known.

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
    """Return whether the text of a message is stored as an artifact."""
    return bool(item.message.content) and item.tokens >= (OUTPUT_TOKENS if item.message.role == "tool" else TEXT_TOKENS)


def _find_files(message: Message, calls: Mapping[str, ToolCall]) -> Iterator[WrittenFile]:
    if message.role == "assistant":
        yield from find_code_blocks(message.content)
    call = calls.get(message.tool_call_id or "")
    written = find_written_file(call, message.content) if call else None
    if written:
        yield written


def _to_artifact(item: StoredMessage, calls: Mapping[str, ToolCall]) -> NewArtifact:
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
