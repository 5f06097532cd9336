"""What a PostgreSQL server lacks, from the state of the database and the rights of its owner."""

from dataclasses import replace

import pytest

from newton.db.requirements import OwnerState, RoleState, list_missing, list_statements
from newton.db.roles import derive_roles

USABLE = RoleState("app", exists=True, is_privileged=False, may_grant=False, uses_public=True, is_usable=True)
READY = OwnerState(
    database="ana", owner="ana", version="18.4", major=18, encoding="UTF8", is_standby=False, is_superuser=False,
    creates_roles=False, creates_schemas=True, uses_public=True, is_public_open=True, opens_public=False,
    vector="0.8.5", vector_schema="public", vector_available="0.8.5", is_installed=False, schemas=(),
    foreign_schemas=(), roles=(USABLE, USABLE),
)  # fmt: skip


def test_nothing_is_missing_where_an_administrator_has_done_all() -> None:
    assert list(list_missing(READY)) == []
    state = replace(READY, encoding="LATIN1")
    assert ["LATIN1" in one.problem for one in list_missing(state)] == [True]
    assert list(list_missing(replace(state, is_installed=True))) == []
    statements = list_statements('a"; drop database x; --', 'o"wner')
    assert statements[0] == """create role "o""wner" login password 'CHANGE ME'"""
    assert statements[2] == r'''\connect "a""; drop database x; --"'''


@pytest.mark.parametrize(
    ("differs", "problem", "remedy"),
    [
        ({"version": "14.9", "major": 14}, "The server is PostgreSQL 14.9.", "PostgreSQL 15 or later"),
        ({"is_standby": True}, "a standby, which refuses writes", "the primary server"),
        ({"vector": None, "vector_available": None}, "has no pgvector", "Install the package pgvector 0.7 or later"),
        ({"vector": None, "vector_available": "0.5.1"}, "has pgvector 0.5.1", "Install the package pgvector 0.7"),
        ({"is_installed": True, "foreign_schemas": ("brain",)}, "brain does not belong to", "the owner of the schemas"),
    ],
)
def test_what_sql_cannot_provide_has_a_remedy_too(differs: dict[str, object], problem: str, remedy: str) -> None:
    (missing,) = list_missing(replace(READY, **differs))
    assert problem in missing.problem and remedy in missing.remedy and not missing.sql


@pytest.mark.parametrize(
    ("differs", "major", "expected"),
    [
        ({"exists": False, "is_usable": False}, 15, 0),
        ({"exists": False, "is_usable": False}, 18, 0),
        ({"is_usable": False}, 15, 0),  # who could create roles could grant those of others until version 15
        ({"is_usable": False}, 16, 1),
        ({"is_usable": False, "may_grant": True}, 16, 0),
    ],
)
def test_an_owner_who_creates_roles_is_asked_for_what_it_cannot_do(
    differs: dict[str, object], major: int, expected: int
) -> None:
    role = replace(USABLE, **differs)
    state = replace(READY, creates_roles=True, major=major, roles=(role,))
    assert len(list(list_missing(state))) == expected
    assert len(list(list_missing(replace(state, is_superuser=True)))) == 0


@pytest.mark.parametrize(
    "name", ["newton", "Newton", "new-ton", "日本", "x" * 63, "ü" * 31, 'a"b', "newton_", "_", " "]
)
def test_roles_of_each_database_have_names_that_need_no_quotes(name: str) -> None:
    for role in derive_roles(name):
        assert role.isascii() and role.replace("_", "").isalnum() and role.islower() and len(role) <= 63
    others = {derive_roles(other) for other in (name + "x", name.swapcase(), name + " ", f"{name}-")} - {
        derive_roles(name)
    }
    assert len(others) >= 3
