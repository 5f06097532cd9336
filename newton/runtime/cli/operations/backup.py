"""Commands `newton backup` and `newton restore`: back up and restore all agents."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.clock import SystemClock
from newton.content.package_data import data_folder
from newton.db import backup as backups
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say


async def create_backup(
    folder: Annotated[Path, Parameter(help="New folder for the backup.")], *, json: JsonOption = False
) -> None:
    """Back up all agents to a folder. Newton can be used during the backup.

    The backup has the rows of Newton's tables, as of its start, and the hash of each file. It can be restored into the
    embedded database and into an external one. It is not encrypted.

    Example: newton backup /backups/2026-11-21
    """
    manifest = await backups.create_backup(load_settings(), folder, now=SystemClock().now())
    if json:
        formatting.print_json(manifest.model_dump(mode="json", exclude={"files"}))
    else:
        say(f"Backed up {_format_row_counts(manifest.rows)}. Restore: `newton restore {shlex.quote(str(folder))}`")


async def restore_backup(
    folder: Annotated[Path, Parameter(help="Folder of the backup.")],
    *,
    replace: Annotated[bool, Parameter(negative=(), help="Replace the data that exist already.")] = False,
    keep_tokens: Annotated[
        bool,
        Parameter(
            negative=(), help="Keep the tokens of the backup valid, even those revoked after the backup was made."
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Verify a backup and restore it. Stop `newton serve` first.

    Nothing in a backup is run: Newton's migrations create the tables, and every row is checked by their constraints.
    But who writes a backup writes what the agents remember, decided and may do, and the hashes in it show damage, not
    forgery: restore only a backup that you trust.

    The tokens in the backup are revoked, because some may have been revoked after the backup was made.

    Example: newton restore /backups/2026-11-21
    """
    result = await backups.restore(
        load_settings(), folder, schema=data_folder("schema"), replace=replace, keep_tokens=keep_tokens
    )
    if json:
        formatting.print_json(
            {
                "created_at": result.manifest.made_at.isoformat(),
                "rows": dict(result.rows),
                "revoked_tokens": result.revoked,
                "previous_data": str(result.previous_data) if result.previous_data else None,
            }
        )
        return
    say(f"Restored as of {result.manifest.made_at:%Y-%m-%d %H:%M}: {_format_row_counts(result.rows)}.")
    if result.revoked:
        formatting.print_notice(
            f"Revoked {formatting.pluralize(result.revoked, 'token')} of the backup, because some may have been revoked"
            " after it was made. `newton tokens create NAME` creates a new one."
        )
    formatting.print_notice(
        "Memories forgotten or erased after the backup are restored too: forget or erase them again."
    )
    if result.previous_data:
        say(f"The previous data is in {result.previous_data}. Delete it after a check with `newton doctor --verify`.")


def _format_row_counts(rows: Mapping[str, int]) -> str:
    memories, agents = rows.get("memory.memories", 0), rows.get("runtime.agents", 0)
    return f"{formatting.pluralize(memories, 'memory', 'memories')} of {formatting.pluralize(agents, 'agent')}"
