"""The end of each chain, noted in a file outside the database: a cut tail looks whole to the database itself."""

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
    """Tells one database from another by where it is, not by who asks. None is the embedded one of the folder."""
    if url is None:
        return "embedded"
    parts = urlsplit(url)
    return hashlib.sha256(f"{parts.netloc.rpartition('@')[2]}{parts.path}?{parts.query}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ChainHeadFiles:
    """The notes of one database. `place` tells it from others that use the same folder."""

    folder: Path
    database_key: str

    def path(self, agent_id: UUID) -> Path:
        return self.folder / f"{agent_id}.{self.database_key}.json"

    def load(self, agent_id: UUID) -> ChainHead | None:
        """The last end of the chain that was noted. Raises ConfigError for a file that is no such note."""
        path = self.path(agent_id)
        try:
            noted = json.loads(path.read_text(encoding="utf-8"))
            return ChainHead(int(noted["seq"]), bytes.fromhex(noted["hash"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{path} is no note of a chain: {error}.", hint="Restore it, or delete it to begin anew."
            ) from None

    def load_or_none(self, agent_id: UUID) -> ChainHead | None:
        """What was noted last; None too for a file that cannot be read, which keeps nobody from deciding."""
        with suppress(ConfigError):
            return self.load(agent_id)
        return None

    def save(self, agent_id: UUID, head: ChainHead | None) -> None:
        """Notes an end of the chain, after its commit. Only a later one replaces what is there, and None does not: a
        chain that does not go on from the last note must not hide that. A folder that cannot be written to keeps nobody
        from deciding."""
        with suppress(OSError, ConfigError):
            seen = self.load(agent_id)
            if head and head.seq and (seen is None or seen.seq < head.seq):
                self._write_atomically(self.path(agent_id), json.dumps({"seq": head.seq, "hash": head.hash.hex()}))

    def delete(self, agent_id: UUID) -> None:
        """The chain itself has gone, by the wish of whoever it was about."""
        self.path(agent_id).unlink(missing_ok=True)

    def _write_atomically(self, path: Path, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{uuid4().hex}")
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
