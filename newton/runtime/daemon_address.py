"""The file `daemon.json`, in which a running daemon publishes its URL for clients on the same machine."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from newton import __version__

ADDRESS_FILE = "daemon.json"


class DaemonAddress(BaseModel):
    """The URL and the version of a running daemon."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    version: str


@contextmanager
def publish_address(home: Path, url: str) -> Generator[None]:
    """Write the address file, and delete it after the block. If several daemons run, the last one overwrites it."""
    address = DaemonAddress(url=url, version=__version__)
    (home / ADDRESS_FILE).write_text(address.model_dump_json() + "\n", encoding="utf-8")
    try:
        yield
    finally:
        if read_address(home) == address:
            (home / ADDRESS_FILE).unlink(missing_ok=True)


def read_address(home: Path) -> DaemonAddress | None:
    """Return the content of the address file; None if it is missing or invalid. A killed daemon leaves its file."""
    try:
        return DaemonAddress.model_validate_json((home / ADDRESS_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
