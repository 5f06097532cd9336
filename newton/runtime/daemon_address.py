"""The address file of the daemon of a data folder, for local clients."""

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
    """Write the address file for the duration of the block. The last of several daemons overwrites it."""
    address = DaemonAddress(url=url, version=__version__)
    (home / ADDRESS_FILE).write_text(address.model_dump_json() + "\n", encoding="utf-8")
    try:
        yield
    finally:
        if read_address(home) == address:
            (home / ADDRESS_FILE).unlink(missing_ok=True)


def read_address(home: Path) -> DaemonAddress | None:
    """Return the content of the address file, which may be of a killed daemon, or None without a valid file."""
    try:
        return DaemonAddress.model_validate_json((home / ADDRESS_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
