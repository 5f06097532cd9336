"""Every named query against the real schema, and no SQL anywhere else."""

import ast
import re
from pathlib import Path

import asyncpg
import pytest

import newton
from newton.db.pool import Tx
from newton.db.queries import SqlQuery, parse_queries
from tests.unit.source_trees import trees, walk

ROOT = Path(newton.__file__).parent
FILES = sorted(ROOT.rglob("*.sql"))
QUERIES = {
    f"{file.relative_to(ROOT)}:{name}": query
    for file in FILES
    for name, query in parse_queries(file.read_text()).items()
}

# What is the same for every agent, and what asks the catalog.
AGENTLESS = {
    "memory/vectors.sql:register_model",
    "memory/vectors.sql:insert_model",
    "db/requirements.sql:describe_server",
    "db/requirements.sql:describe_owner",
    "db/requirements.sql:describe_role",
    "db/roles.sql:find_names",
    "db/roles.sql:read_names",
    "db/roles.sql:list_confined",
    "db/roles.sql:list_hidden",
    "db/roles.sql:list_remaining",
    "db/scrub.sql:list_text_tables",
    "agent/services/person_search.sql:list_tables",
    "runtime/jobs/queue.sql:get_moment",
    "runtime/transfer/export_file.sql:list_tables",
    "runtime/transfer/export_file.sql:list_models",
    "runtime/transfer/export_file.sql:defer_constraints",
    "runtime/transfer/export_file.sql:import_models",
}
# A model is the same for every agent: one of the two tables that these read has none.
MODELS = {"memory/vectors.sql:get_active_model"}
# run as newton_worker, which sees every agent's name and place in the queue and nothing else
ACROSS = (
    "runtime/jobs/claims.sql:",
    "memory/agents.sql:list_names",
    "memory/agents.sql:list_dependents",
    "memory/agents.sql:count_user_agents",
)
# What must name the agent in another way than `agent_id = $1`.
INSERTS = re.compile(r"^(--[^\n]*\n)*\s*insert into", re.IGNORECASE)
STATEMENT = re.compile(
    r"\b(select\b.+\bfrom|insert\s+into|update\s+\S+\s+set|delete\s+from|truncate\s+table)\b|^\s*select\s+\S*(\(|\$\d)",
    re.IGNORECASE | re.DOTALL,
)


async def test_a_query_prepares_with_as_many_parameters_as_names(shared: str) -> None:
    conn = await asyncpg.connect(shared)
    try:
        assert {name: fault for name, query in QUERIES.items() if (fault := await _unprepared(conn, query))} == {}
    finally:
        await conn.close()


async def _unprepared(conn: Tx, query: SqlQuery) -> str | None:
    """Why it cannot be run as it is called."""
    used = {int(number) for number in re.findall(r"\$(\d+)", query.sql)}
    if used != set(range(1, len(query.args) + 1)):
        return f"it uses the parameters {sorted(used)} and takes {query.args}"
    try:
        prepared = await conn.prepare(query.sql)
    except asyncpg.PostgresError as error:
        return str(error)
    return None if len(prepared.get_parameters()) == len(query.args) else "PostgreSQL counts other parameters"


@pytest.mark.parametrize(("args", "sql"), [(("agent_id",), "select $1, $2"), (("agent_id",), "select $1 from nowhere")])
async def test_a_query_that_cannot_be_run_is_noticed(tx: Tx, args: tuple[str, ...], sql: str) -> None:
    assert await _unprepared(tx, SqlQuery("planted", args, sql))


def test_a_query_names_its_agent() -> None:
    plain = AGENTLESS | MODELS
    named = {name: query for name, query in QUERIES.items() if name not in plain and not name.startswith(ACROSS)}
    assert [name for name, query in named.items() if query.args[0] != "agent_id" or not _scoped(query)] == []


def _scoped(query: SqlQuery) -> bool:
    """Whether every agent table it reads is asked for one agent, and every row it writes carries that agent."""
    if "pg_advisory" in query.sql:
        return "$1" in query.sql
    if INSERTS.match(query.sql):
        return (
            re.search(r"\(\s*agent_id\b", query.sql) is not None
            and re.search(r"(values \(|select\s+)\$1\b", query.sql) is not None
        )
    reads = re.findall(r"(?:from|join|update) (?:memory|heart|brain|dialogue|cognition|runtime)\.\w+", query.sql)
    scopes = re.findall(r"\bagent_id = \$1|from runtime\.authenticate_token\(\$1", query.sql)
    inserts = re.findall(r"insert into [\w.]+ \(\s*agent_id\b", query.sql)
    bound = re.findall(r"select\s+\$1\b", query.sql)
    return len(scopes) >= len(reads) and len(bound) >= len(inserts)


@pytest.mark.parametrize(
    "sql",
    [
        "select * from memory.memories where ref = $1",
        "select * from memory.memories as m join heart.facts as f on f.memory_id = m.memory_id where m.agent_id = $1",
        "update memory.outbox set attempts = 1 where memory_id = $2",
        "insert into memory.outbox (memory_id, text) values ($1, $2)",
    ],
)
def test_a_query_for_every_agent_is_noticed(sql: str) -> None:
    assert not _scoped(SqlQuery("planted", ("agent_id",), sql))


def test_each_sql_file_is_used_by_exactly_one_module_and_each_query_by_that_module() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    unused: list[str] = []
    for file in FILES:
        users = [source for source in sources.values() if re.search(rf'load\("[\w.]+", "{file.name}"\)', source)]
        users = [source for source in users if f'"newton.{_package(file)}", "{file.name}"' in source]
        assert len(users) == 1, f"{file} is loaded by {len(users)} modules"
        unused += [name for name in parse_queries(file.read_text()) if f'SQL["{name}"]' not in users[0]]
    # agents.register is also run by the test suite's own fixture; nothing else may be.
    assert unused == []


def _package(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).parent.parts)


OTHER_DATABASES = "newton/runtime/transfer/exports/memory_stores.py"  # it reads the SQLite files of other programs


def test_no_sql_stands_in_python_outside_the_database_package() -> None:
    found = [
        f"{path}:{line}"
        for path, tree in trees("newton").items()
        if not path.startswith("newton/db/") and path != OTHER_DATABASES
        for line in sql_strings(tree)
    ]
    assert found == []
    # sql in python is noticed
    assert sql_strings(ast.parse('rows = conn.fetch("select 1 from t")\n')) == [1]
    assert sql_strings(ast.parse('sql = f"DELETE FROM {table}"\n')) == [1]
    assert sql_strings(ast.parse('lock = "select pg_advisory_lock($1)"\n')) == [1]
    assert sql_strings(ast.parse('text = "Delete the file."\n"""Docstrings may say: select one from two."""\n')) == []


def sql_strings(tree: ast.Module) -> list[int]:
    """The lines on which a string holds a statement."""
    docs = {id(node.value) for node in walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.lineno
        for node in walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docs
        and STATEMENT.search(node.value)
    ]


def test_sql_is_in_files_of_one_module_each_with_names_of_its_own() -> None:
    query = SqlQuery("find", ("agent_id", "ref"), "select $1, $2")
    assert query.bind(ref="r", agent_id="a") == ["a", "r"]
    for given in ({"agent_id": "a"}, {"agent_id": "a", "ref": "r", "more": 1}, {}):
        with pytest.raises(TypeError, match="find takes"):
            query.bind(**given)
    with pytest.raises(ValueError, match="a query name occurs twice"):
        parse_queries("-- name: a(x)\nselect $1;\n-- name: a(y)\nselect $1;\n")
