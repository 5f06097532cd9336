"""The files with which Newton is deployed: the unit of systemd and the compose file."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from newton.content.yaml_files import parse_trusted
from newton.db import server_paths
from newton.db.embedded_server import EmbeddedServer
from newton.environment import FILE_SUFFIX, SECRET_SETTINGS
from newton.errors import DatabaseError

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "contrib" / "newton.service"
PROGRAM = re.compile(r"(?<=ExecStart=)\S+")
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


def complaints(folder: Path, unit: str) -> str:
    """What systemd has to say against a unit, whose program need not be installed."""
    file = folder / UNIT.name
    file.write_text(PROGRAM.sub("/bin/sh", unit), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@needs_systemd
def test_systemd_has_nothing_to_say_against_the_unit(tmp_path: Path) -> None:
    unit = UNIT.read_text(encoding="utf-8")
    assert complaints(tmp_path, unit) == ""
    assert complaints(tmp_path, re.sub(r"(?m)^#(LoadCredential|Environment)=", r"\1=", unit)) == ""
    assert "RestartSecs" in complaints(tmp_path, unit.replace("RestartSec=", "RestartSecs="))


def test_unit_and_compose_file_keep_secrets_in_files_and_state_restarts_and_limits() -> None:
    unit = UNIT.read_text(encoding="utf-8")
    assert re.findall(r"Environment=(\w+)=%d/", unit) == [f"OPENAI_API_KEY{FILE_SUFFIX}"]
    assert all(name in unit for name in SECRET_SETTINGS)
    assert "serve --log-format json" in unit
    services: dict[str, dict[str, Any]] = parse_trusted((ROOT / "docker-compose.yml").read_text())["services"]
    assert services.keys() == {"db", "newton"}
    for service in services.values():
        assert service["restart"] == "unless-stopped"
        assert service.keys() >= {"mem_limit", "cpus", "pids_limit", "stop_grace_period", "logging"}
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert services["newton"]["read_only"] and services["newton"]["cap_drop"] == ["ALL"]
    assert '"--log-format", "json"' in (ROOT / "Dockerfile").read_text()
    for name in (".dockerignore", ".gitignore"):
        assert {".env", "secrets"} <= {line.rstrip("/") for line in (ROOT / name).read_text().splitlines()}


def test_the_database_has_no_password_that_is_known_to_others() -> None:
    compose = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    services: dict[str, dict[str, Any]] = parse_trusted(compose)["services"]
    password = services["db"]["environment"]["POSTGRES_PASSWORD"]
    url = services["newton"]["environment"]["DATABASE_URL"]
    assert re.fullmatch(r"\$\{NEWTON_DB_PASSWORD\?.+\.env.*\}", password), "required, with the remedy"
    assert re.fullmatch(r"postgresql://newton:\$\{NEWTON_DB_PASSWORD\?.+\}@db:5432/newton", url)
    for name in ("docker-compose.yml", "contrib/docker-compose.secrets.yml", "docs/deploying.md", "README.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"PASSWORD:-|newton:newton@", text), name


def test_an_installation_without_the_server_says_so_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setattr(server_paths, "binaries", lambda: tmp_path / "bin")
    with pytest.raises(DatabaseError, match="has no embedded PostgreSQL server") as refused:
        EmbeddedServer.start(tmp_path / "home")
    assert "DATABASE_URL" in refused.value.hint
    assert not (tmp_path / "home").exists()
