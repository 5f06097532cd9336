"""The manifest of a mirror, the file by which its folder is recognized."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

MANIFEST = ".newton-mirror.json"


class MirrorManifest(BaseModel):
    """The contents of a mirror: its files, and a hash of the line of each memory, by its id."""

    agent: str
    exported_at: datetime
    files: tuple[str, ...]
    lines: dict[str, str]


def is_mirror(path: Path) -> bool:
    """Return whether a path is a folder that a mirror was written to."""
    return (path / MANIFEST).is_file()


def read_manifest(folder: Path) -> MirrorManifest | None:
    """Return the manifest of a mirror, or None if the folder is none."""
    try:
        return MirrorManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValidationError):
        return None
