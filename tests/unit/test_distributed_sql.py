"""Rules for SQL that runs on a distributed database as it does on one server. docs/citus.md says why each is needed."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import newton
from newton.content.package_data import data_folder
from newton.db.migrations import split_statements
from newton.db.queries import parse_queries

ROOT = Path(newton.__file__).parent
COMMENT = re.compile(r"--[^\n]*")
QUERIES = {
    f"{file.relative_to(ROOT)}:{name}": COMMENT.sub("", query.sql).lower()
    for file in sorted(ROOT.rglob("*.sql"))
    for name, query in parse_queries(file.read_text()).items()
}
DEFINITIONS = {
    f"{file.name}:{number}": COMMENT.sub("", statement).lower()
    for file in sorted(data_folder("schema").glob("*.sql"))
    for number, statement in enumerate(split_statements(file.read_text()), 1)
}
ROUTINE = re.compile(r"\s*create (function|procedure) ")
# The functions with the rights of the owner, which take the agent as their first argument.
DEFINERS = {
    found[1]
    for text in DEFINITIONS.values()
    if "security definer" in text.partition("$$")[0]
    and (found := re.match(r"\s*create (?:or replace )?function ([\w.]+)\(\s*target_agent uuid\b", text))
}
AFTER_JOIN = {"where", "join", "cross", "inner", "left", "right", "full", "group", "order", "limit", "union"}
CLOCKS = r"(now\(\)|statement_timestamp\(\)|clock_timestamp\(\)|runtime\.get_moment\()"


def _list_statements(text: str) -> list[str]:
    """A query, or the statements of the body of a routine."""
    body = re.search(r"\$\$(.*)\$\$", text, re.DOTALL) if ROUTINE.match(text) else None
    return body.group(1).split(";") if body else [text]


def _inserts(text: str) -> list[str]:
    """Each INSERT with all that belongs to it."""
    found: list[str] = []
    for match in re.finditer(r"\binsert\s+into\b", text):
        depth, end = 0, match.end()
        while end < len(text) and depth >= 0 and text[end] != ";":
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append(text[match.start() : end])
    return found


def _copies_rows(text: str) -> bool:
    """Citus would COPY the rows into the shard, which row level security refuses or, on the same node, does not see."""
    return any(
        not re.match(r"insert\s+into\s+[\w.%]+\s*(\([^)]*\))?\s*values", one)
        and not re.search(r"\breturning\b|\bon conflict\b", one)
        for one in _inserts(text)
    )


def _modifies(text: str) -> bool:
    return re.search(r"\b(insert\s+into|update\s+[\w.]+\s|delete\s+from)\b", text) is not None


def _locks_and_inserts(text: str) -> bool:
    """A locking CTE whose rows are inserted: Citus reads its intermediate result in the wrong format."""
    return any(
        re.search(r"\bfor (no key )?(update|share)\b", one) and re.search(r"\binsert\s+into\b|\bdelete\s+from\b", one)
        for one in _list_statements(text)
    )


def _hides_clock(text: str) -> bool:
    """A clock in COALESCE, CASE, RETURNING, or in the WHERE of ON CONFLICT."""
    inside = (
        rf"coalesce\([^()]*{CLOCKS}|\bthen\s+{CLOCKS}|\belse\s+{CLOCKS}|returning [^;]*({CLOCKS}|pg_current_xact_id)"
    )
    return any(
        _modifies(one) and (re.search(inside, one) or re.search(rf"do update\b.*\bwhere\b.*{CLOCKS}", one, re.DOTALL))
        for one in _list_statements(text)
    )


def _is_volatile_update(text: str) -> bool:
    """An UPDATE with a random value, or with an aggregate of a column."""
    return any(
        re.match(r"\s*update\b", one) and re.search(r"gen_random_uuid\(|\brandom\(|jsonb_agg\(|jsonb_build_", one)
        for one in _list_statements(text)
    )


def _locks_on_session_node(text: str) -> bool:
    """An advisory lock that is not taken on the node of the agent."""
    locks = len(re.findall(r"pg_(try_)?advisory_xact_lock\(", text))
    node = r"\(select count\(\*\) from runtime\.agents (as a )?where (a\.)?agent_id = (\$1|target_agent)\) as node"
    return locks > len(re.findall(node, text)) and "memory.forget(" not in text


def _has_simple_case(text: str) -> bool:
    """CASE with an operand beside a function of the clock: Citus writes it out wrongly."""
    return any(
        _modifies(one) and re.search(CLOCKS, one) and re.search(r"\bcase\s+(?!when)\w", one)
        for one in _list_statements(text)
    )


def _takes_row(text: str) -> bool:
    """A function of a whole row: the rows of a shard have another type."""
    head = text.partition("language")[0]
    schemas = "memory|heart|brain|dialogue|cognition|runtime"
    return ROUTINE.match(text) is not None and re.search(rf"[(,]\s*\w+ ({schemas})\.\w+", head) is not None


def _sets_null(text: str) -> bool:
    return "on delete set null" in text


def _sets_scope_here(text: str) -> bool:
    """set_config stays on the node of the session; only runtime.authenticate_token runs on the node of the agent."""
    return "set_config('newton.agent_id'" in text and "function runtime.authenticate_token(" not in text


def _is_undelegated_definer(text: str) -> bool:
    """The rights of the owner that are not those of a function whose first argument is the agent."""
    head = text.partition("$$")[0]
    return (
        "security definer" in head
        and re.match(r"\s*create (or replace )?function [\w.]+\(\s*target_agent uuid\b", text) is None
    )


def _returns_rows(text: str) -> bool:
    """A body of the form RETURN that reads a table: Citus sends the word to the node as if it were a statement."""
    return (
        ROUTINE.match(text) is not None
        and re.search(r"\nreturn\b.*\b(from|join) \w+\.\w+", text, re.DOTALL) is not None
    )


def _recurses(text: str) -> bool:
    """A recursive query of rows in an SQL function: Citus refuses it with the parameters of the function."""
    rows = re.search(
        r"with recursive.*\b(from|join) (memory|heart|brain|dialogue|cognition|runtime)\.\w+", text, re.DOTALL
    )
    return ROUTINE.match(text) is not None and "language sql" in text and rows is not None


def _intersects(text: str) -> bool:
    return re.search(r"\bintersect\b|\bexcept\s+select\b", text) is not None


def _joins_by_subquery(text: str) -> bool:
    """A subquery in the ON of an outer join. If a parameter that is null makes the condition false, PostgreSQL plans
    neither, and Citus no longer sees that the subquery reads the rows of one agent.
    """
    for match in re.finditer(r"\b(left|right|full)\s+(outer\s+)?join\b", text):
        depth, is_condition = 0, False
        for word in re.findall(r"[();]|\w+", text[match.end() :]):
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth < 0 or word == ";" or (depth == 0 and word in AFTER_JOIN):
                break
            if is_condition and word == "select":
                return True
            is_condition = is_condition or (depth == 0 and word == "on")
    return False


def _calls_definer_within(text: str) -> bool:
    """A call with the rights of the owner that is no statement of its own: Citus passes only that on to the node of the
    agent, and refuses the call after a write of the application in the same transaction.
    """
    plain = " ".join(text.split()).rstrip("; ")
    if plain.startswith(("create ", "grant ", "revoke ", "comment ", "alter ")):
        return False
    is_alone = re.fullmatch(r"select (?:\* from )?[\w.]+\([^()]*\)(?: as \w+)?", plain)
    return is_alone is None and any(f"{name}(" in plain for name in DEFINERS)


RULES: dict[str, tuple[Callable[[str], bool], str]] = {
    "insert": (
        _copies_rows,
        "insert into memory.outbox (agent_id, text) select $1, x from unnest($2::text[]) as x",
    ),
    "lock": (
        _locks_and_inserts,
        "with r as (select a from t where agent_id = $1 for update) insert into u (a) select a from r returning a",
    ),
    "clock": (_hides_clock, "update runtime.jobs set due_at = coalesce($2, now()) where agent_id = $1"),
    "clock in case": (_hides_clock, "update runtime.jobs set due_at = case when $2 then now() end where agent_id = $1"),
    "clock of a conflict": (
        _hides_clock,
        "insert into t values ($1) on conflict (agent_id) do update set a = 1 where t.until < now()",
    ),
    "transaction id": (_hides_clock, "insert into t (agent_id) values ($1) returning pg_current_xact_id()"),
    "volatile": (_is_volatile_update, "update t set name = gen_random_uuid() where agent_id = $1"),
    "advisory": (_locks_on_session_node, "select pg_advisory_xact_lock(hashtextextended($1::uuid::text, 2))"),
    "case": (_has_simple_case, "update t set a = case state when 'x' then 1 end where agent_id = $1 and due < now()"),
    "row": (_takes_row, "create function memory.f(m memory.memories) returns text language sql return m.kind"),
    "return": (
        _returns_rows,
        "create function f() returns bool language sql\nreturn exists (select from memory.sources)",
    ),
    "recursion": (
        _recurses,
        "create function f(a uuid) returns setof uuid language sql as $$"
        " with recursive later as (select a union select l.b from memory.links as l) $$",
    ),
    "intersect": (_intersects, "select 1 where array(select unnest($1) intersect select unnest($2)) <> '{}'"),
    "join": (
        _joins_by_subquery,
        "select o.a, p.b from o left join p on $2 is not null and not exists ( select from q where q.agent_id = $1)",
    ),
    "set null": (
        _sets_null,
        "create table t (foreign key (agent_id, b) references u on delete set null (b))",
    ),
    "scope": (_sets_scope_here, "select set_config('newton.agent_id', $1, true)"),
    "call": (_calls_definer_within, "with r as (select heart.forget_rules($1)) select memory.forget($1) from r"),
    "definer": (
        _is_undelegated_definer,
        "create procedure f(target_agent uuid) language sql security definer as $$ $$",
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_statements_run_on_one_server_and_on_many(rule: str) -> None:
    breaks, planted = RULES[rule]
    assert breaks(planted), "the bug, planted"
    assert [name for name, text in (QUERIES | DEFINITIONS).items() if breaks(text)] == []


def test_statements_of_a_file_are_found() -> None:
    sql = """
    -- a comment; with a semicolon
    create table a (b text default 'x;y');
    create function f() returns int language sql begin atomic select case when true then 1 end; select 2; end;
    do $body$ begin perform 1; end $body$;
    select "a;b", e'it\\'s; here' /* ; */ from a
    """
    first, second, third, fourth = split_statements(sql)
    assert first.endswith("'x;y')")
    assert second.endswith("select 2; end")
    assert third.startswith("do $body$") and third.endswith("$body$")
    assert fourth.startswith("select")
    assert split_statements("-- nothing here\n") == []
