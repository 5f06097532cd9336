"""Comparison of a daemon's settings and files with those that a caller would use in its own process."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from newton.environment import SettingSources, read_sources
from newton.settings import Settings

# Each caller has its own agent and project; a caller that connects has found the data folder.
UNCOMPARED_SETTINGS = frozenset(("agent", "project", "data_dir"))
CONTENT_SETTINGS = ("frames_dir", "procedures_dir", "profiles_dir")  # loaded once by a daemon

FileStamps = frozenset[tuple[str, int, int]]  # path, time of change in nanoseconds, size in bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonState:
    """The settings, variables of libraries, working folder and content files with which a daemon was started."""

    settings: Settings
    library_choices: Mapping[str, str]
    folder: Path
    content: FileStamps
    started_at: datetime

    @classmethod
    def capture(cls, settings: Settings, *, now: datetime) -> "DaemonState":
        """Return the state of this process, a daemon that starts now with `settings`."""
        sources = read_sources()
        return cls(
            settings=settings,
            library_choices=sources.library_choices,
            folder=Path(sources.folder),
            content=_stamp_content(settings, Path(sources.folder)),
            started_at=now,
        )

    def list_differences(self, settings: Settings, sources: SettingSources) -> list[str]:
        """Return the names of the settings and variables in which a caller differs from the daemon.

        `settings` and `sources` belong to the caller. Content folders whose files have changed since the daemon started
        are also named. If the list is empty, a command has the same result in the daemon and in the caller's process.
        """
        own, others = (_to_absolute(one, at) for one, at in ((self.settings, self.folder), (settings, sources.folder)))
        differing = [name for name in own if name not in UNCOMPARED_SETTINGS and own[name] != others[name]]
        differing += [
            name
            for name in sorted({*self.library_choices, *sources.library_choices})
            if self.library_choices.get(name) != sources.library_choices.get(name)
        ]
        if not differing and self.content != _stamp_content(self.settings, self.folder):
            return ["the files of " + ", ".join(name for name in CONTENT_SETTINGS if own[name])]
        return differing


def _to_absolute(settings: Settings, folder: str | Path) -> dict[str, Any]:
    return {name: Path(folder, value.expanduser()) if isinstance(value, Path) else value for name, value in settings}


def _stamp_content(settings: Settings, folder: Path) -> FileStamps:
    return frozenset(
        stamp
        for name in CONTENT_SETTINGS
        if (content := getattr(settings, name)) is not None
        for stamp in _stamp_files(folder / content)
    )


def _stamp_files(folder: Path) -> Iterator[tuple[str, int, int]]:
    for parent, _, files in os.walk(folder):
        for path in (Path(parent, name) for name in files):
            try:
                found = path.stat()
            except OSError:  # a broken link, or deleted meanwhile
                continue
            yield str(path), found.st_mtime_ns, found.st_size
