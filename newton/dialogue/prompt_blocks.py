"""Storage of what Newton put into the prompts of a session besides its messages, so that it is sent there again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.view import MemoryBlock
from newton.memory.memory import Trust

SQL = load("newton.dialogue", "prompt_blocks.sql")

BlockKind = Literal["system", "memory"]
FORGOTTEN = "[forgotten]"  # the text of a block of which a memory was forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """A system message of a session, or the text that stands before the input at `position`, as it was sent.

    `edition` names what a system message was made for. `min_trust` is the lowest trust of the quarantined memories in
    it, `memory_ids` are the memories that it may state, and `bundle_id` is the context from which it was made.
    """

    kind: BlockKind
    position: int
    text: str
    tokens: int
    edition: str = ""
    min_trust: Trust | None = None
    bundle_id: UUID | None = None
    memory_ids: tuple[UUID, ...] = ()


async def insert_block(tx: Tx, block: PromptBlock, *, session_id: UUID, agent_id: UUID, now: datetime) -> None:
    """Store a block, unless its place has one: a later call of the same turn sends the same."""
    await SQL["insert_block"].execute(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        position=block.position,
        kind=block.kind,
        edition=block.edition,
        text=block.text,
        tokens=block.tokens,
        min_trust=block.min_trust,
        now=now,
        bundle_id=block.bundle_id,
        memory_ids=list(block.memory_ids),
    )


async def find_system_block(tx: Tx, *, session_id: UUID, agent_id: UUID) -> tuple[datetime, PromptBlock | None]:
    """Return when a session began, and its latest system message; None without one, or if a part was forgotten."""
    row = await SQL["get_system_block"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    if row["text"] in (None, FORGOTTEN):
        return row["created_at"], None
    own = {name: row[name] for name in ("position", "text", "tokens", "edition")}
    return row["created_at"], PromptBlock(kind="system", **own)


async def load_memory_blocks(
    tx: Tx, ranges: Sequence[tuple[int, int]], *, session_id: UUID, agent_id: UUID
) -> Mapping[int, MemoryBlock]:
    """Return the blocks before the inputs in these ranges of a conversation, by the positions of the inputs."""
    rows = await SQL["list_memory_blocks"].fetch_all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        firsts=[first for first, _ in ranges],
        lasts=[last for _, last in ranges],
    )
    return {row["position"]: MemoryBlock(row["text"], row["tokens"], row["min_trust"]) for row in rows}


async def load_all(tx: Tx, *, session_id: UUID, agent_id: UUID) -> Mapping[tuple[BlockKind, int], str]:
    """Return the texts of all blocks of a conversation, by kind and position."""
    rows = await SQL["list_blocks"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return {(row["kind"], row["position"]): row["text"] for row in rows}
