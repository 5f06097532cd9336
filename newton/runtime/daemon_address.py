"""Where the daemon of a data folder serves, noted there for those of this machine who look for it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from newton import __version__

ADDRESS_FILE = "daemon.json"


class DaemonAddress(BaseModel):
    """Where it serves, and of which version of Newton it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    version: str


@contextmanager
def publish_address(home: Path, url: str) -> Generator[None]:
    """It is noted within the block. Of several daemons of a folder the last one is."""
    here = DaemonAddress(url=url, version=__version__)
    (home / ADDRESS_FILE).write_text(here.model_dump_json() + "\n", encoding="utf-8")
    try:
        yield
    finally:
        if read_address(home) == here:
            (home / ADDRESS_FILE).unlink(missing_ok=True)


def read_address(home: Path) -> DaemonAddress | None:
    """The one that was noted, which may have been killed since; None when there is none."""
    try:
        return DaemonAddress.model_validate_json((home / ADDRESS_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
