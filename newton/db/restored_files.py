"""The files of a backup that a restored server must not obey: a backup can come from somebody else."""

import re
from pathlib import Path

# Settings that initdb writes. All others of a backup are dropped: some of them are commands or load libraries.
_KEPT_SETTINGS = re.compile(
    r"\s*(?:dynamic_shared_memory_type|max_wal_size|min_wal_size|log_timezone|datestyle|lc_\w+|default_text_search_config|fsync"
    r"|synchronous_commit|full_page_writes|autovacuum)\s*="
)
_ACCESS = "local all all trust\n"  # the folder of the socket decides who connects
_OBEYED_FILES = ("postgresql.auto.conf", "pg_ident.conf", "recovery.signal", "standby.signal", "tablespace_map")


def replace_configuration(folder: Path, config: str) -> None:
    """Replace the configuration of restored server files: by `config`, after the settings that initdb wrote."""
    main = folder / "postgresql.conf"
    lines = main.read_text(encoding="utf-8", errors="replace").splitlines() if main.is_file() else []
    kept = "\n".join(line for line in lines if _KEPT_SETTINGS.match(line))
    main.write_text(f"{kept}\n{config}", encoding="utf-8")
    (folder / "pg_hba.conf").write_text(_ACCESS, encoding="utf-8")
    for name in _OBEYED_FILES:
        (folder / name).unlink(missing_ok=True)
    (folder / "pg_ident.conf").touch()
