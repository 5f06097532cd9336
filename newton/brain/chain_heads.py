"""Files with the chain heads (number of records and last hash) of ledgers, to detect a truncated ledger.

They are outside the database, so that a change of the database does not change them.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from newton.brain.hash_chain import ChainHead
from newton.errors import ConfigError


def derive_database_key(url: str | None) -> str:
    """Return a key for the database at this URL, the same for all its users. None means the embedded database."""
    if url is None:
        return "embedded"
    parts = urlsplit(url)
    return hashlib.sha256(f"{parts.netloc.rpartition('@')[2]}{parts.path}?{parts.query}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ChainHeadFiles:
    """The files with the chain heads of one database. `database_key` is part of their names in a shared folder."""

    folder: Path
    database_key: str

    def path(self, agent_id: UUID) -> Path:
        return self.folder / f"{agent_id}.{self.database_key}.json"

    def load(self, agent_id: UUID) -> ChainHead | None:
        """Return the saved head; None if there is none. Raises ConfigError for an invalid file."""
        path = self.path(agent_id)
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            return ChainHead(int(saved["seq"]), bytes.fromhex(saved["hash"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{path} is not a valid chain head file: {error}.",
                hint="Restore the file, or delete it: the next decision saves a new one.",
            ) from None

    def load_or_none(self, agent_id: UUID) -> ChainHead | None:
        """Return the saved head; None if the file is missing or invalid, so that decisions can still be recorded."""
        with suppress(ConfigError):
            return self.load(agent_id)
        return None

    def save(self, agent_id: UUID, head: ChainHead | None) -> None:
        """Save a committed head if it has more records than the saved one.

        Saving a shorter head, or None, would hide a truncated chain. Errors are ignored, so that they block no
        decision.
        """
        with suppress(OSError, ConfigError):
            saved = self.load(agent_id)
            if head and head.seq and (saved is None or saved.seq < head.seq):
                self._write_atomically(self.path(agent_id), json.dumps({"seq": head.seq, "hash": head.hash.hex()}))

    def delete(self, agent_id: UUID) -> None:
        """Delete the saved head of an agent that was erased, if there is one."""
        self.path(agent_id).unlink(missing_ok=True)

    def _write_atomically(self, path: Path, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{uuid4().hex}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
