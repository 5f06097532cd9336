"""Files that somebody else names: only regular files are opened, and no links lead out of a folder."""

import json
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from newton.content.document_folders import find_documents
from newton.content.documents import DocumentError, load_bytes
from newton.content.skills import find_skills, read_skill
from newton.content.yaml_files import load_yaml
from newton.errors import InputError, NewtonError
from newton.file_access import NOT_REGULAR, close_folder, find_exposure, open_regular, read_regular
from newton.runtime.hooks import installation, transcript
from newton.runtime.mcp_servers.servers import read_server_file
from newton.runtime.transfer.exports.export_detection import find_source
from newton.runtime.transfer.exports.export_files import read_json_files
from newton.runtime.transfer.import_source import read_file
from newton.runtime.transfer.mirror.mirror_text import MANIFEST, read_manifest

PATIENCE = 60  # seconds after which a reader counts as waiting for ever
COMMAND = "newton hook --program codex"
READERS: dict[str, Callable[[Path], object]] = {
    "transcript": lambda path: transcript.read_messages(str(path), "s"),
    "settings": lambda path: installation.plan_installation(path, "codex", COMMAND),
    "features": lambda path: installation.find_obstacle(path.with_name("hooks.json"), "codex"),
    "document": load_bytes,
    "ignored": lambda path: find_documents(path.parent),
    "skill": read_skill,
    "skills": lambda path: find_skills(path.parent).unreadable,
    "pack": load_yaml,
    "servers": read_server_file,
    "export": lambda path: [one.error for one in read_json_files(path)],
    "format": find_source,
    "lines": lambda path: list(read_file(path).read()),
    "mirror": lambda path: read_manifest(path.parent),
}
NAMES = {"features": "config.toml", "ignored": ".gitignore", "skills": "SKILL.md", "mirror": MANIFEST}


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize("make", [make_pipe, make_device, make_socket])
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_waits_for_a_pipe_a_device_or_a_socket(
    tmp_path: Path, reader: str, make: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    path = Path(NAMES.get(reader, "file"))
    make(path)
    pool = ThreadPoolExecutor(1)
    reading = pool.submit(READERS[reader], path)
    try:
        assert not reading.exception(PATIENCE) or isinstance(reading.exception(), NewtonError)
    except TimeoutError:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))  # lets the thread end
        raise
    finally:
        pool.shutdown(wait=False)


def test_only_a_regular_file_up_to_its_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(path, max_bytes=5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular(path, max_bytes=4)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    make_pipe(tmp_path / "pipe")
    with pytest.raises(OSError, match=NOT_REGULAR):
        open_regular(tmp_path / "pipe")
    with pytest.raises(DocumentError, match=NOT_REGULAR):
        load_bytes(tmp_path / "pipe")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside of the folder `inside`."""
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").mkdir()
    path = tmp_path / "outside" / "secret.json"
    path.write_text("{}", encoding="utf-8")
    return path


@pytest.mark.parametrize("linked", ["file", "folder", "backup"])
def test_the_hooks_of_a_project_are_written_inside_of_it(tmp_path: Path, secret: Path, linked: str) -> None:
    project = tmp_path / "inside"
    path = installation.find_settings_file("claude-code", home=tmp_path, project=project)
    if linked == "folder":
        path.parent.symlink_to(secret.parent)
        (secret.parent / path.name).write_text("{}", encoding="utf-8")
    else:
        path.parent.mkdir()
        path.symlink_to(secret) if linked == "file" else path.write_text("{}", encoding="utf-8")
    path.with_name(path.name + installation.BACKUP_SUFFIX).symlink_to(secret)
    if linked == "backup":
        backup = installation.plan_installation(path, "claude-code", COMMAND, within=project).write()
        assert backup and backup.read_text(encoding="utf-8") == "{}" and not backup.is_symlink()
    else:
        with pytest.raises(InputError, match="outside of the project"):
            installation.plan_installation(path, "claude-code", COMMAND, within=project)
        with pytest.raises(InputError, match="outside of the project"):
            installation.plan_removal(path, within=project)
        with pytest.raises(InputError, match="outside of the project"):
            installation.SettingsChange(path=path, before=None, after="{}\n", within=project).write()
    assert {one.read_text(encoding="utf-8") for one in secret.parent.iterdir()} == {"{}"}


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_an_export_in_a_folder_is_read_inside_of_it(tmp_path: Path, secret: Path, linked: str) -> None:
    folder = tmp_path / "inside"
    conversation = [{"title": "Told elsewhere"}]
    (secret.parent / "conversations.json").write_text(json.dumps(conversation), encoding="utf-8")
    if linked == "file":
        (folder / "conversations.json").symlink_to(secret.parent / "conversations.json")
    else:
        (folder / "part").symlink_to(secret.parent)
    found = list(read_json_files(folder, "conversations.json", "*/conversations.json"))
    assert [(one.value, "outside of" in str(one.error)) for one in found] == [(None, True)]
    (folder / "own.json").write_text("[1]", encoding="utf-8")
    (folder / "again.json").symlink_to("own.json")
    assert [one.value for one in read_json_files(folder, "again.json")] == [[1]]


def test_a_folder_of_skills_is_read_inside_of_it(tmp_path: Path, secret: Path) -> None:
    text = "---\nname: mend-a-tap\ndescription: Mend a tap.\n---\n# Mend\n\n1. Turn it off.\n"
    (secret.parent / "SKILL.md").write_text(text, encoding="utf-8")
    (tmp_path / "inside" / "tap").symlink_to(secret.parent)
    found = find_skills(tmp_path / "inside")
    assert found.skills == {} and "outside of" in str(list(found.errors.values()))
    assert list(find_skills(secret.parent).skills) == ["mend-a-tap"]


def test_a_shared_folder_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    assert find_exposure(folder) and not close_folder(folder, kept=())
    folder.chmod(0o755)
    monkeypatch.setenv("HOME", str(folder))
    assert find_exposure(folder) and not close_folder(folder, kept=())
    assert folder.stat().st_mode & 0o777 == 0o755
    monkeypatch.setenv("HOME", str(tmp_path))
    (folder / "operator.token").write_text("nwo_", encoding="utf-8")
    (folder / "operator.token").chmod(0o644)
    assert find_exposure(folder) == "" and close_folder(folder, kept=("operator.token",))
    assert find_exposure(folder) is None and (folder / "operator.token").stat().st_mode & 0o777 == 0o644
