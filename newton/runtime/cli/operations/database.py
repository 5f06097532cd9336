"""Commands `newton db`: what the server needs, and the distribution of agents over the nodes of a Citus cluster."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from newton.content.package_data import data_folder
from newton.db.connection import open_owner_connection
from newton.db.distribution import DEFAULT_SHARDS, DistributionPlan, describe_plan, distribute, plan_distribution
from newton.db.migrations import find_new_migrations, migrate, read_migrations
from newton.db.requirements import MissingRequirement, find_missing, list_statements
from newton.errors import InputError
from newton.operations.text_format import pluralize
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.settings import Settings

EXISTING_DATABASE_HELP = "-- Run this with psql as an administrator (superuser), in the database of DATABASE_URL."
NEW_DATABASE_HELP = "-- Run this with psql as an administrator (superuser), with a password in place of CHANGE ME."
EMBEDDED_HELP = """\
-- DATABASE_URL is not set: Newton uses its embedded server, which has all that it needs.
-- `newton db requirements --database NAME --owner USER` prints the SQL for a new database on another server."""


async def print_requirements(
    *,
    database: Annotated[str | None, Parameter(help="Name of a database that is to be created.")] = None,
    owner: Annotated[str | None, Parameter(help="Name of the user that is to own it.")] = None,
    json: JsonOption = False,
) -> None:
    """Print what the server at DATABASE_URL lacks for Newton, as SQL for its administrator.

    With `--database`, print all that an administrator runs for a new database whose owner has no other rights. The
    output is for psql: what SQL cannot provide is a comment. Nothing is changed. The embedded server, which Newton
    uses without DATABASE_URL, lacks nothing.

    Example: newton db requirements --database newton --owner ana
    """
    if owner is not None and database is None:
        raise InputError("--owner needs --database.", hint="Name the database that is to be created with --database.")
    settings = load_settings()
    if database is not None:
        statements = list_statements(database, owner or database)
        lines = [NEW_DATABASE_HELP, *map(_end_statement, statements)]
        problems: list[MissingRequirement] = []
    else:
        problems = await _find_missing(settings)
        statements = [sql for one in problems for sql in one.sql]
        lines = _format_problems(problems, is_embedded=settings.database_url is None)
    if json:
        formatting.print_json({"missing": [asdict(one) for one in problems], "sql": statements})
    else:
        say("\n".join(lines))


def _format_problems(problems: Sequence[MissingRequirement], *, is_embedded: bool) -> list[str]:
    """Return a comment on each problem, followed by the statements that solve it."""
    if is_embedded:
        return [EMBEDDED_HELP]
    if not problems:
        return ["-- The database of DATABASE_URL has all that Newton needs."]
    lines = [EXISTING_DATABASE_HELP] if any(one.sql for one in problems) else []
    for one in problems:
        lines += [f"-- {one.problem}" + ("" if one.sql else f" {one.remedy}"), *map(_end_statement, one.sql)]
    return lines


def _end_statement(sql: str) -> str:
    return sql if sql.startswith("\\") else f"{sql};"  # a command of psql has no semicolon


async def _find_missing(settings: Settings) -> list[MissingRequirement]:
    if settings.database_url is None:
        return []
    async with open_owner_connection(settings) as connection:
        return await find_missing(connection)


async def distribute_database(
    *,
    shards: Annotated[
        int, Parameter(help="Number of parts into which the agents are divided. It cannot be changed later.")
    ] = DEFAULT_SHARDS,
    dry_run: Annotated[
        bool, Parameter(negative=(), help="Check and show what would be done, and change nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Distribute all agents over the nodes of a Citus cluster. Stop `newton serve` first.

    DATABASE_URL must be the connection string of a superuser on the coordinator. All rows of an agent are on one node.
    Run it again after an interruption; it does what is left. Later versions of Newton distribute new tables by
    themselves.

    Example: newton db distribute --dry-run
    """
    wanted = read_migrations(data_folder("schema"))
    async with open_owner_connection(load_settings()) as connection:
        pending = await find_new_migrations(connection, wanted)
        if pending and not dry_run:
            await migrate(connection, wanted)
        plan = await plan_distribution(connection, shards=shards)
        if not dry_run:
            await distribute(connection, plan)
    _print_plan(plan, migrations=pending, is_done=not dry_run, json=json)


def _print_plan(plan: DistributionPlan, *, migrations: list[str], is_done: bool, json: bool) -> None:
    if json:
        formatting.print_json(
            {
                "nodes": [str(node) for node in plan.workers],
                "tables": list(plan.tables),
                "functions": list(plan.functions),
                "shards": plan.shards,
                "migrations": migrations,
                "is_done": is_done,
            }
        )
        return
    if not is_done:
        if migrations:
            say(f"Apply {pluralize(len(migrations), 'migration')}: {', '.join(migrations)}.")
        say("\n".join(describe_plan(plan)))
        say("Nothing was changed.")
        return
    tables = pluralize(len(plan.tables), "table")
    nodes = pluralize(len(plan.workers), "node")
    say(f"Distributed {tables} over {nodes}. `newton doctor` checks the result.")
