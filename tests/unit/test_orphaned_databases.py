"""What `newton doctor` says of database folders that no data folder names."""

import os
from pathlib import Path

import pytest

from newton.db import server_paths
from newton.db.server_paths import HOME_FILE, POINTER_FILE, SERVER_USER, OrphanedDatabase, find_orphans
from newton.runtime.cli.operations.health import describe_orphan


@pytest.mark.parametrize(
    ("owner", "is_root", "deletes"),
    [(SERVER_USER, True, True), (SERVER_USER, False, False), ("ana", True, False), ("ana", False, False)],
)
def test_only_root_is_advised_to_delete_and_only_what_is_of_newton(
    tmp_path: Path, *, owner: str, is_root: bool, deletes: bool
) -> None:
    finding = describe_orphan(OrphanedDatabase(tmp_path / "db", tmp_path / "gone", owner), is_root=is_root)
    assert finding.state == "note" and owner in finding.detail and str(tmp_path / "gone") in finding.detail
    assert ("rm -r" in finding.hint) == deletes
    assert deletes or ("Only root" in finding.hint) != is_root


def test_a_server_that_may_run_is_named_before_its_folder_is_deleted(tmp_path: Path) -> None:
    orphan = OrphanedDatabase(tmp_path, tmp_path / "gone", SERVER_USER)
    assert "postmaster.pid" not in describe_orphan(orphan, is_root=True).hint
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres/postmaster.pid").touch()
    assert "postmaster.pid" in describe_orphan(orphan, is_root=True).hint


def test_only_folders_whose_data_folder_names_no_database_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_paths, "ROOT_HOME", tmp_path)
    homes = {name: tmp_path / "homes" / name for name in ("used", "moved", "gone")}
    for name, home in homes.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / HOME_FILE).write_text(f"{home}\n", encoding="utf-8")
    for name, target in (("used", "used"), ("moved", "used")):
        homes[name].mkdir(parents=True)
        (homes[name] / POINTER_FILE).write_text(f"{tmp_path / target}\n", encoding="utf-8")
    (tmp_path / "odd" / HOME_FILE).mkdir(parents=True)  # cannot be read
    found = {one.folder.name: one for one in find_orphans()}
    assert sorted(found) == ["gone", "moved"]
    assert found["gone"].owner == Path(os.path.devnull).parent.owner() or os.geteuid() != 0
    assert "uses another database" in describe_orphan(found["moved"], is_root=True).detail
    assert "does not exist" in describe_orphan(found["gone"], is_root=True).detail
