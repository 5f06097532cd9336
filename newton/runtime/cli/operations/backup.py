"""Commands `newton backup` and `newton restore`: back up and restore all agents."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.clock import SystemClock
from newton.content.package_data import data_folder
from newton.db import backup as backups
from newton.db.backup_files import count_kinds
from newton.operations.text_format import pluralize
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say

COUNTED_KINDS = ("fact", "decision", "episode", "procedure", "censor", "item")
COUNTED_TABLES = {
    "conversation": "dialogue.sessions",
    "message": "dialogue.messages",
    "document": "heart.documents",
    "artifact": "dialogue.artifacts",
}


async def create_backup(
    folder: Annotated[Path, Parameter(help="New folder for the backup.")], *, json: JsonOption = False
) -> None:
    """Back up all agents to a folder. Newton can be used during the backup.

    The backup has the rows of Newton's tables, as of its start, and the hash of each file. It can be restored into the
    embedded database and into an external one. It is not encrypted.

    Example: newton backup /backups/2026-11-21
    """
    manifest = await backups.create_backup(load_settings(), folder, now=SystemClock().now())
    kinds = count_kinds(folder, manifest)
    if json:
        formatting.print_json(manifest.model_dump(mode="json", exclude={"files"}) | {"kinds": dict(kinds)})
        return
    say(f"Backed up {_format_contents(manifest.rows, kinds)}.")
    rows, tables = pluralize(sum(manifest.rows.values()), "row"), len(manifest.rows)
    say(f"Read back and verified {rows} of {tables} tables. Restore: `newton restore {shlex.quote(str(folder))}`")


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
    contents = _format_contents(result.rows, count_kinds(folder, result.manifest))
    say(f"Restored as of {result.manifest.made_at:%Y-%m-%d %H:%M}: {contents}.")
    if result.revoked:
        formatting.print_notice(
            f"Revoked {pluralize(result.revoked, 'token')} of the backup, because some may have been revoked"
            " after it was made. `newton tokens create NAME` creates a new one."
        )
    formatting.print_notice(
        "Memories forgotten or erased after the backup are restored too: forget or erase them again."
    )
    if result.previous_data:
        say(f"The previous data is in {result.previous_data}. Delete it after a check with `newton doctor --verify`.")


def _format_contents(rows: Mapping[str, int], kinds: Mapping[str, int]) -> str:
    """Return what a person would count: agents and what they have.

    >>> _format_contents({"runtime.agents": 2, "dialogue.sessions": 1}, {"fact": 3})
    '2 agents with 3 facts and 1 conversation'
    >>> _format_contents({"runtime.agents": 1}, {})
    '1 agent with nothing stored yet'
    """
    counts = {kind: kinds.get(kind, 0) for kind in COUNTED_KINDS}
    counts |= {noun: rows.get(table, 0) for noun, table in COUNTED_TABLES.items()}
    parts = [pluralize(number, noun) for noun, number in counts.items() if number]
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) or "nothing stored yet"
    return f"{pluralize(rows.get('runtime.agents', 0), 'agent')} with {listed}"
