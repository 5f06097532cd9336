"""Newton as docs/deploying.md says to run it: the image, the compose project, and what survives of it.

Each test runs real containers; scripts/test-deploy runs them.
"""

import json
import shutil
from pathlib import Path
from uuid import uuid4

import httpx2
import openai
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.deploy.project import (
    BASE,
    DB_PASSWORD,
    READY_SECONDS,
    ROOT,
    ComposeProject,
    DaemonContainer,
    docker,
    project,
)
from tests.fixture import BACKUP, read_told
from tests.system.servers import wait

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(1_800)]

MAX_BYTES_BEYOND_BASE = 300_000_000
SECRETS_FILE = ROOT / "contrib" / "docker-compose.secrets.yml"
# for an image of PostgreSQL that does not know POSTGRES_PASSWORD_FILE
READ_PASSWORD = """
services:
  db:
    entrypoint: [sh, -c, 'POSTGRES_PASSWORD=$$(cat $$POSTGRES_PASSWORD_FILE) exec entrypoint']
"""
HARBOUR_NOTES = (
    "Bruno painted the lighthouse",
    "The ferry brought forty goats",
    "Marta sold her blue boat",
    "A storm broke the long pier",
    "Nine lanterns were stolen",
)
NEXT_MIGRATION = "create table memory.next_version (id int primary key); insert into memory.next_version values (1);"
TABLES = "select oid, relname, relfilenode from pg_class order by oid"
EVERY_MODULE = """
import importlib, pkgutil, newton
for module in pkgutil.walk_packages(newton.__path__, "newton."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_the_image_is_small_and_complete(image: str) -> None:
    sizes = [int(docker("image", "inspect", "-f", "{{.Size}}", name)) for name in (image, BASE)]
    assert sizes[0] - sizes[1] < MAX_BYTES_BEYOND_BASE
    assert docker("run", "--rm", "--entrypoint", "python", image, "-c", EVERY_MODULE) == ""


def test_the_embedded_database_is_not_in_the_image_and_says_so(image: str) -> None:
    said = docker("run", "--rm", image, "remember", "Ana lives in Porto.", check=False)
    assert "This installation of Newton has no embedded PostgreSQL server." in said
    assert "DATABASE_URL" in said


def test_without_a_password_of_the_database_nothing_starts(image: str) -> None:
    with project(image) as made:
        del made.env["NEWTON_DB_PASSWORD"]
        said = made.run("up", "-d", "--no-build", check=False)
        assert "NEWTON_DB_PASSWORD" in said and "write a password to .env" in said
        assert docker("ps", "-aq", "--filter", f"name={made.name}").strip() == ""


def test_it_runs_without_rights(running: ComposeProject) -> None:
    status = dict(line.split(":\t") for line in running.within("cat", "/proc/1/status").splitlines() if ":\t" in line)
    assert status["Uid"].split() == ["10001"] * 4
    assert int(status["CapEff"], 16) == 0 and status["NoNewPrivs"] == "1"
    for place in ("/", "/opt/newton", "/usr/bin", "/var/lib"):
        assert "Read-only file system" in running.within("touch", f"{place}/x", check=False)


def test_limits_and_restarts_are_set(running: ComposeProject) -> None:
    for service in ("db", "newton"):
        form = "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} {{.HostConfig.RestartPolicy.Name}}"
        memory, processes, restart = running.inspect(service, form).split()
        assert int(memory) > 0 and int(processes) > 0 and restart == "unless-stopped"


async def test_memories_are_used_over_http_mcp_and_the_openai_protocol(running: ComposeProject) -> None:
    running.tells("The ferry to Tavira is called Artemis.")
    question = "What is the ferry to Tavira called?"
    assert "Artemis" in running.context(question)  # HTTP
    shown = {"Authorization": f"Bearer {running.token}"}
    async with (
        httpx2.AsyncClient(headers=shown, timeout=60) as plain,
        Client(streamable_http_client(f"{running.url}/mcp", http_client=plain)) as client,
    ):
        recalled = await client.call_tool("recall", {"query": question})
        assert not recalled.is_error and "Artemis" in json.dumps(recalled.structured_content)
    async with openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.token) as chat:
        reply = await chat.chat.completions.create(model="newton", messages=[{"role": "user", "content": question}])
        assert "Artemis" in (reply.choices[0].message.content or "")


def test_a_command_runs_in_the_container(running: ComposeProject) -> None:
    running.within("newton", "remember", "The lighthouse keeper is called Bruno.")
    assert "Bruno" in running.context("Who keeps the lighthouse?")
    running.within("newton", "doctor", "--verify")


@pytest.mark.parametrize("service", ["db", "newton"])
def test_what_was_stored_survives_a_killed_part(running: ComposeProject, service: str) -> None:
    names = [f"{place} before {service} was killed" for place in HARBOUR_NOTES]  # none could be an update of another
    running.tells(*names)
    running.kills(service)
    with running.client() as client:
        found = client.post("/v1/recall", json={"query": f"before {service} was killed", "limit": 20}).text
    assert [name for name in names if name not in found] == []
    running.tells(f"After {service} was killed, the harbour is open.")


def test_the_log_is_json(running: ComposeProject) -> None:
    lines = docker("logs", running.container("newton")).splitlines()
    assert len(lines) >= 2
    assert all({"event", "level", "timestamp"} <= json.loads(line).keys() for line in lines)


def test_a_backup_is_restored(running: ComposeProject) -> None:
    folder = f"/var/lib/newton/backup-{uuid4().hex[:8]}"
    running.tells("The bakery opens at six.")
    running.within("newton", "backup", folder)
    running.tells("The bakery burnt down in spring.")
    running.run("stop", "newton")
    said = running.run("run", "--rm", "-T", "newton", "restore", folder, check=False)
    assert "--replace" in said, said
    running.run("run", "--rm", "-T", "newton", "restore", folder, "--replace")
    running.starts()
    found = running.context("What about the bakery?")
    assert "opens at six" in found and "burnt down" not in found


def test_a_second_daemon_works_beside_the_first(running: ComposeProject, image: str) -> None:
    name, network = f"{running.name}-second", running.inspect("newton", "{{.HostConfig.NetworkMode}}")
    env = "-e", f"DATABASE_URL=postgresql://newton:{DB_PASSWORD}@db:5432/newton"
    docker("run", "-d", "--rm", "--name", name, "--network", network, *env, "-p", "127.0.0.1:0:8700", image)
    try:
        second = DaemonContainer(name)
        wait(second.is_ready, seconds=READY_SECONDS)
        running.tells("The first daemon heard of Faro.")
        assert "Faro" in second.post("/v1/context", input="What was heard of Faro?")
        second.post("/v1/memories", content="The second daemon heard of Olhao.")
        assert "Olhao" in running.context("What was heard of Olhao?")
    finally:
        docker("rm", "-f", name, check=False)


def test_secrets_come_from_files(image: str, quoting: Path, tmp_path: Path) -> None:
    (tmp_path / "db_password").write_text("s3cret-of-the-db\n")
    (tmp_path / "database_url").write_text("postgresql://newton:s3cret-of-the-db@db:5432/newton\n")
    for file in tmp_path.iterdir():
        file.chmod(0o444)
    tmp_path.chmod(0o755)
    secrets = quoting, SECRETS_FILE, *_reading_password_file(tmp_path)
    with project(image, *secrets, NEWTON_SECRETS=str(tmp_path), NEWTON_DB_PASSWORD="") as made:
        made.starts()
        made.tells("The key lies under the mat.")
        assert "under the mat" in made.context("Where does the key lie?")
        assert "s3cret-of-the-db" not in docker("inspect", made.container("newton"), made.container("db"))


def test_it_is_upgraded_from_the_previous_version_and_not_back(image: str, quoting: Path, tmp_path: Path) -> None:
    newer = _build_next_version(image, tmp_path)
    try:
        with project(image, quoting) as made:
            made.run(
                "run", "--rm", "-T", "-v", f"{_readable(BACKUP, tmp_path)}:/fixture:ro", "newton", "restore", "/fixture"
            )
            made.env["NEWTON_IMAGE"] = newer
            made.starts()
            for question, fact in read_told().items():
                assert fact in made.context(question, **{"X-Newton-Agent": "ben"})
            made.tells("The newer version was here.")
            tables = _list_tables(made)
            made.env["NEWTON_IMAGE"] = image
            made.run("stop", "newton")
            said = made.run("run", "--rm", "-T", "newton", "serve", check=False)
            assert "The database is newer than this version of Newton: it has the migration 9000_next.sql." in said
            assert _list_tables(made) == tables
            made.env["NEWTON_IMAGE"] = newer
            made.starts()
            assert "newer version" in made.context("Which version was here?")
    finally:
        docker("rmi", newer, check=False)


def _reading_password_file(folder: Path) -> list[Path]:
    if "docker-entrypoint.sh" in docker("inspect", "-f", "{{.Config.Entrypoint}}", "pgvector/pgvector:pg18"):
        return []
    file = folder / "read-password.yml"
    file.write_text(READ_PASSWORD)
    return [file]


def _build_next_version(image: str, folder: Path) -> str:
    """The image with one more migration, as the next version of Newton would have."""
    context = folder / "next"
    context.mkdir()
    (context / "9000_next.sql").write_text(NEXT_MIGRATION)
    shipped = "/opt/newton/lib/python3.11/site-packages/newton/_shipped/schema/"
    (context / "Dockerfile").write_text(f"FROM {image}\nCOPY --chown=0:0 9000_next.sql {shipped}\n")
    docker("build", "-t", f"{image}-next", str(context))
    return f"{image}-next"


def _readable(backup: Path, folder: Path) -> Path:
    """A copy of the backup that the container's user may read."""
    copy = folder / "backup"
    shutil.copytree(backup, copy)
    for path in (folder, copy, *copy.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy


def _list_tables(made: ComposeProject) -> str:
    return docker("exec", made.container("db"), "psql", "-U", "newton", "-d", "newton", "-Atc", TABLES)
