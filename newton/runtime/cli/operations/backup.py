"""`newton backup` and `newton restore`."""

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
    folder: Annotated[Path, Parameter(help="Where to; it must not be there yet.")], *, json: JsonOption = False
) -> None:
    """Copy everything, of every agent, into a folder, while others may write.

    Of the embedded server it is a base backup with its log, of an external database a dump. Each file is verified and
    its hash noted. The backup is not encrypted.

    Example: newton backup /backups/2026-11-21
    """
    made = await backups.create_backup(load_settings(), folder, now=SystemClock().now())
    if json:
        formatting.print_json(made.model_dump(mode="json", exclude={"files"}))
    else:
        say(f"{folder} has {_format_row_counts(made.rows)}. `newton restore {folder}` brings them back.")


async def restore_backup(
    folder: Annotated[Path, Parameter(help="The folder of a backup.")],
    *,
    replace: Annotated[bool, Parameter(negative=(), help="Put it in the place of data that is there.")] = False,
    keep_tokens: Annotated[
        bool, Parameter(negative=(), help="Let its tokens open, those too that were revoked since it was made.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Put a backup in the place of the data, after all of it was verified. Stop `newton serve` before.

    The tokens in it are revoked: it does not know which of them were revoked since.

    Example: newton restore /backups/2026-11-21
    """
    done = await backups.restore(
        load_settings(), folder, schema=data_folder("schema"), replace=replace, keep_tokens=keep_tokens
    )
    if json:
        aside = str(done.previous_data) if done.previous_data else None
        formatting.print_json(
            {
                "made_at": done.manifest.made_at.isoformat(),
                "rows": dict(done.rows),
                "revoked": done.revoked,
                "replaced": aside,
            }
        )
        return
    say(f"Restored as of {done.manifest.made_at:%Y-%m-%d %H:%M}: {_format_row_counts(done.rows)}.")
    if done.revoked:
        formatting.print_notice(
            f"{formatting.pluralize(done.revoked, 'token')} of then were revoked, for some may have been since."
            " `newton tokens create NAME` makes others."
        )
    formatting.print_notice("What was forgotten or erased since it was made is back: forget or erase it again.")
    if done.previous_data:
        say(f"What was there lies in {done.previous_data}; delete it when all is well (`newton doctor --verify`).")


def _format_row_counts(rows: Mapping[str, int]) -> str:
    if not rows:  # as of a database that an older Newton made
        return "everything, uncounted"
    memories, agents = rows.get("memory.memories", 0), rows.get("runtime.agents", 0)
    return f"{memories} memories of {agents} agents"
