"""Commands `newton db`: what the server needs, and the distribution of agents over the nodes of a Citus cluster."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from newton.content.package_data import data_folder
from newton.db.connection import open_owner_connection
from newton.db.distribution import DEFAULT_SHARDS, DistributionPlan, describe_plan, distribute, plan_distribution
from newton.db.migrations import find_new_migrations, migrate, read_migrations
from newton.db.requirements import MissingRequirement, find_missing, list_statements
from newton.errors import InputError
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say


async def print_requirements(
    *,
    database: Annotated[str | None, Parameter(help="Name of a database that is to be created.")] = None,
    owner: Annotated[str | None, Parameter(help="Name of the user that is to own it.")] = None,
    json: JsonOption = False,
) -> None:
    """Print what the server at DATABASE_URL lacks for Newton, as SQL for its administrator.

    With `--database`, print all that an administrator runs for a new database whose owner has no other rights. The
    output is for psql: what SQL cannot provide is a comment. Nothing is changed.

    Example: newton db requirements --database newton --owner ana
    """
    if database is not None:
        statements = list_statements(database, owner or database)
        problems: list[MissingRequirement] = []
    else:
        problems = await _find_missing()
        statements = [sql for one in problems for sql in one.sql]
    if json:
        formatting.print_json({"missing": [asdict(one) for one in problems], "sql": statements})
        return
    for one in problems:
        say(f"-- {one.problem}" + ("" if one.sql else f" {one.remedy}"))
    for sql in statements:
        say(sql if sql.startswith("\\") else f"{sql};")
    if not problems and not statements:
        say("-- The server has all that Newton needs.")


async def _find_missing() -> list[MissingRequirement]:
    settings = load_settings()
    if settings.database_url is None:
        raise InputError(
            "DATABASE_URL is not set, and the embedded server has all that Newton needs.",
            hint="Set DATABASE_URL, or name a new database with --database and its owner with --owner.",
        )
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
            say(f"Apply {formatting.pluralize(len(migrations), 'migration')}: {', '.join(migrations)}.")
        say("\n".join(describe_plan(plan)))
        say("Nothing was changed.")
        return
    tables = formatting.pluralize(len(plan.tables), "table")
    nodes = formatting.pluralize(len(plan.workers), "node")
    say(f"Distributed {tables} over {nodes}. `newton doctor` checks the result.")
