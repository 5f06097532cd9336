"""Tombstones: keyed hashes of what was forgotten, by which an import or a model cannot bring it back.

A tombstone contains no text. Its key is a file of the data folder, so that neither the database nor an export suffices
to test guesses.
"""

import hmac
import os
import re
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import PERSON_TIERS, WriteContext
from newton.text.letters import fold
from newton.text.sentences import split_sentences

SQL = load("newton.memory", "tombstones.sql")

FORGOTTEN = "[forgotten]"  # in place of a forgotten text
WITHHELD = "[withheld]"  # in place of a text that was not to be kept
KEY_FILE = "tombstone.key"
MAX_PHRASE = 6  # words
MIN_LETTERS = 3  # of a statement: "No." is said by everybody

_DATE = re.compile(r"^\[[\d-]+\] \w+: ")  # before the text of a message in its short forms


class TombstoneKey:
    """The key of the hashes in this process: that of its data folder, or a random one."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def use_file(self, home: Path) -> None:
        """Load the key of a data folder; create it on first use."""
        path = home / KEY_FILE
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (
            suppress(FileExistsError),
            os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
        ):
            file.write(self._key)
        self._key = path.read_bytes()

    def hash(self, agent_id: UUID, kind: str, text: str) -> bytes:
        """Return the hash of a text for one agent."""
        return hmac.digest(self._key, b"\0".join((agent_id.bytes, kind.encode(), text.encode())), "sha256")


KEY = TombstoneKey()


def seal_ref(ref: str, *, agent_id: UUID) -> str:
    """Return an id of a message in place of one that is computed from a text which is not kept."""
    return f"sealed:{KEY.hash(agent_id, 'ref', ref).hex()}"


def is_redacted(text: str) -> bool:
    """Return whether a part of a stored text was forgotten, or was not kept.

    >>> is_redacted("I work at Bosch. [withheld]"), is_redacted("I work at Bosch.")
    (True, False)
    """
    return WITHHELD in text or FORGOTTEN in text


def mark_rest(kept: str, mark: str) -> str:
    """Return the part of a text that is kept, as a sentence of its own, with a mark in place of the rest.

    >>> mark_rest("My son reads along", WITHHELD), mark_rest("", FORGOTTEN)
    ('My son reads along. [withheld]', '[forgotten]')
    """
    end = "" if re.search(r"[.!?…:。！？]\W*$", kept) else "."
    return f"{kept}{end} {mark}" if kept else mark


def hash_statements(text: str, *, agent_id: UUID) -> dict[str, bytes]:
    """Return the hash of each sentence of a text, whatever its case, accents and punctuation."""
    plain = {one: " ".join(re.findall(r"\w+", fold(one))) for one in split_sentences(text)}
    return {one: KEY.hash(agent_id, "statement", words) for one, words in plain.items() if len(words) >= MIN_LETTERS}


def hash_phrases(text: str, *, agent_id: UUID) -> list[bytes]:
    """Return the hashes of the sentences of a text, and of each two to six words of it that follow one another."""
    words = re.findall(r"\w+", fold(text))
    sizes = range(2, MAX_PHRASE + 1)
    phrases = {" ".join(words[start : start + size]) for start in range(len(words)) for size in sizes}
    return [*hash_statements(text, agent_id=agent_id).values(), *(KEY.hash(agent_id, "statement", x) for x in phrases)]


async def bury(tx: Tx, texts: Iterable[str], refs: Iterable[str], *, ctx: WriteContext) -> None:
    """Store tombstones for texts that are about to be forgotten, and for the ids of what they came from."""
    spoken = [_DATE.sub("", text) for text in texts]
    hashes = {one for text in spoken for one in hash_statements(text, agent_id=ctx.agent_id).values()}
    hashes |= {KEY.hash(ctx.agent_id, "source", ref) for ref in refs}
    await SQL["insert"].execute(tx, agent_id=ctx.agent_id, tombstones=sorted(hashes), now=ctx.now)


async def find_buried(tx: Tx, texts: Collection[str], refs: Sequence[str], *, agent_id: UUID) -> Mapping[str, datetime]:
    """Return the sentences of the texts, and the refs of sources, that were forgotten, each with the time of that."""
    hashed = [(one, key) for text in texts for one, key in hash_statements(text, agent_id=agent_id).items()]
    hashed += [(ref, KEY.hash(agent_id, "source", ref)) for ref in refs]
    if not hashed:
        return {}
    rows = await SQL["find"].fetch_all(tx, agent_id=agent_id, tombstones=[key for _, key in hashed])
    found = {row["tombstone"]: row["forgotten_at"] for row in rows}
    return {one: found[key] for one, key in hashed if key in found}


async def lift(tx: Tx, texts: Iterable[str], *, agent_id: UUID) -> None:
    """Remove the tombstones of statements that a person tells anew."""
    hashes = [one for text in texts for one in hash_statements(text, agent_id=agent_id).values()]
    await SQL["delete"].execute(tx, agent_id=agent_id, tombstones=hashes)


async def find_unwanted(tx: Tx, texts: Collection[str], *, ctx: WriteContext) -> Collection[str]:
    """Return the sentences of new texts that a person asked to forget; a person who tells them anew lifts this."""
    if ctx.trust in PERSON_TIERS:
        await lift(tx, texts, agent_id=ctx.agent_id)
        return ()
    return await find_buried(tx, texts, (), agent_id=ctx.agent_id)


def leave_out(text: str, buried: Collection[str]) -> str:
    """Return a text with a mark in place of its sentences that were forgotten."""
    sentences = split_sentences(text)
    if not any(one in buried for one in sentences):
        return text
    return " ".join([*(one for one in sentences if one not in buried), FORGOTTEN])
