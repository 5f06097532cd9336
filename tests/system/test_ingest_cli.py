"""`newton ingest` takes in what is in the folder that was named, and nothing that a link leads to elsewhere."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from newton.content.document_folders import find_documents
from newton.runtime.access.operator_token import load_or_create_token
from tests.system.test_cli import environment
from tests.system.typed import ok, typed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of notes beside one of secrets, with every kind of link."""
    notes, secrets = tmp_path / "notes", tmp_path / "secrets"
    (notes / "more").mkdir(parents=True)
    secrets.mkdir()
    (notes / "ferry.md").write_text("The ferry is called Artemis.", encoding="utf-8")
    (notes / "more" / "quay.md").write_text("The quay is of granite.", encoding="utf-8")
    (secrets / "operator.token").write_text("It opens every door.", encoding="utf-8")
    (secrets / "letter.md").write_text("The letter is sealed.", encoding="utf-8")
    (notes / "again.md").symlink_to("ferry.md")
    (notes / "up").symlink_to(notes)
    (notes / "more" / "round").symlink_to("../more")
    (notes / "loop.md").symlink_to("loop.md")
    (notes / "nowhere.md").symlink_to(tmp_path / "nowhere.md")
    return notes


@pytest.fixture
def leaky(folder: Path) -> Path:
    (folder / "harmless.md").symlink_to(folder.parent / "secrets" / "operator.token")
    (folder / "more" / "papers").symlink_to("../../secrets")
    (folder.parent / "secrets" / "back").symlink_to(folder)
    return folder


def kept(home: Path, agent: str) -> set[str]:
    asked = (
        "recall",
        "ferry quay door letter",
        "--kind",
        "passage",
        "--json",
        "--limit",
        "50",
        "--min-relevance",
        "0",
        "--agent",
        agent,
    )
    found: dict[str, Any] = json.loads(ok(typed(home, *asked)))
    return {
        words
        for one in found["items"]
        for words in ("Artemis", "granite", "door", "sealed")
        if words in one["text"] and one["state"] == "ACTIVE"
    }


def test_a_link_that_stays_in_the_folder_is_followed(home: Path, folder: Path) -> None:
    done = typed(home, "ingest", str(folder), "--agent", "inside")
    assert ok(done) == "3 documents: 2 new passages, 1 unchanged, 0 replaced.\n"
    assert " out of " not in done.stderr
    assert "2 files or folders skipped, broken link, or no permission: " in done.stderr
    assert kept(home, "inside") == {"Artemis", "granite"}


def test_a_link_that_leads_out_of_the_folder_is_left_alone_and_told(home: Path, leaky: Path) -> None:
    done = typed(home, "ingest", str(leaky), "--agent", "outside")
    assert ok(done).startswith("3 documents: ")
    said = f"2 links out of {leaky} skipped ({leaky}/harmless.md, {leaky}/more/papers).\n"
    assert f"{said}  Give --follow-links to follow them.\n" in done.stderr
    assert kept(home, "outside") == {"Artemis", "granite"}
    told = json.loads(ok(typed(home, "ingest", str(leaky), "--json", "--agent", "outside")))
    skipped = {one["reason"]: one for one in told["skipped"]}["link out of the folder"]
    assert (skipped["count"], skipped["examples"]) == (2, [f"{leaky}/harmless.md", f"{leaky}/more/papers"])


def test_with_follow_links_they_are_followed_once(home: Path, leaky: Path) -> None:
    done = typed(home, "ingest", str(leaky), "--follow-links", "--agent", "followed")
    assert ok(done).startswith("6 documents: 4 new passages, ")
    assert " out of " not in done.stderr
    assert kept(home, "followed") == {"Artemis", "granite", "door", "sealed"}


def test_a_link_that_is_named_is_followed(home: Path, leaky: Path) -> None:
    by_link = leaky.parent / "by-link"
    by_link.symlink_to(leaky)
    assert ok(typed(home, "ingest", str(by_link), "--agent", "named")).startswith("3 documents: ")
    assert kept(home, "named") == {"Artemis", "granite"}
    assert ok(typed(home, "ingest", str(leaky / "harmless.md"), "--agent", "named")).startswith("1 document: ")
    assert "door" in kept(home, "named")


def test_a_folder_of_such_links_alone_holds_nothing_and_says_why(home: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    (tmp_path / "letter.md").write_text("The letter is sealed.", encoding="utf-8")
    (alone / "letter.md").symlink_to(tmp_path / "letter.md")
    done = typed(home, "ingest", str(alone), "--agent", "alone")
    assert ok(done).startswith("0 documents: ")
    assert "1 link out of" in done.stderr


def test_files_with_secrets_of_newton_are_passed_over_and_their_text_is_not_stored(home: Path, folder: Path) -> None:
    token = load_or_create_token(home)
    (folder / "hard.md").hardlink_to(home / "operator.token")
    (folder / "copy.md").write_text(token, encoding="utf-8")
    (folder / "ferry.md").write_text("The ferry is called Artemis. " * 200 + token[::-1], encoding="utf-8")
    done = typed(home, "ingest", str(folder), "--agent", "secrets")
    assert "newton-secret.\n" in ok(done)
    named = f"{folder}/copy.md, {folder}/hard.md"
    assert f"2 files or folders skipped, file that has a secret of Newton: {named}\n" in done.stderr


@pytest.mark.slow
def test_progress_on_a_pipe_is_plain_lines_and_each_reason_has_one(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    for number in range(20):
        (folder / f"{number:02}.txt").write_text(f"The crane of pier {number}.", encoding="utf-8")
    for name in ("a.png", "b.png", "c.png", "d.png"):
        (folder / name).write_bytes(b"\x89PNG\0")
    (folder / "broken.docx").write_bytes(b"PK no document")
    (folder / "other.xlsx").write_bytes(b"PK no workbook")
    (folder / "cp.txt").write_bytes("Fähre".encode("cp1252"))
    done = typed(home, "ingest", str(folder), "--agent", "mixed")
    assert done.returncode == 2
    assert done.stdout == "21 documents: 21 new passages, 0 unchanged, 0 replaced. Rejected: 2 files.\n"
    lines = done.stderr.splitlines()
    reading = [line for line in lines if line.startswith("Reading: ")]
    assert 5 <= len(reading) <= 12 and reading[-1].startswith("Reading: 23 of 23 (")
    names = ", ".join(f"{folder}/{name}.png" for name in "abc")
    assert f"4 files or folders skipped, binary: {names}, …" in lines
    assert f"newton: 2 files rejected, it is no Office document. {folder}/broken.docx, {folder}/other.xlsx" in lines
    assert "1 document read as cp1252; --encoding sets another encoding." in lines
    assert "\x1b" not in done.stderr


def test_an_encoding_is_given(home: Path, tmp_path: Path) -> None:
    (tmp_path / "town.txt").write_bytes("Łódź has a quay.".encode("iso8859-2"))
    ok(typed(home, "ingest", str(tmp_path / "town.txt"), "--encoding", "latin2", "--agent", "town"))
    assert "Łódź has a quay." in ok(typed(home, "recall", "quay", "--agent", "town"))
    refused = typed(home, "ingest", str(tmp_path / "town.txt"), "--encoding", "runes", "--agent", "town")
    assert refused.returncode == 2 and "'runes' is not a known encoding" in refused.stderr


def test_recall_and_documents_show_where_a_passage_is(home: Path, tmp_path: Path) -> None:
    (tmp_path / "winch.py").write_text("import math\n\n\ndef haul(rope):\n    return math.pi\n", encoding="utf-8")
    ok(typed(home, "ingest", str(tmp_path / "winch.py"), "--agent", "places"))
    assert "[winch.py, haul, lines 1-5] import math" in ok(typed(home, "recall", "haul rope", "--agent", "places"))
    shown = ok(typed(home, "documents", "show", str(tmp_path / "winch.py"), "--agent", "places"))
    assert "haul, haul, lines 1-5\n" in shown
    assert ", of 20" in ok(typed(home, "documents", "--agent", "places"))


@pytest.mark.fault
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_says_where_it_stopped_and_continues(
    home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    folder, agent = tmp_path / "many", f"stopped{number.value}"
    folder.mkdir()
    for file in range(200):
        (folder / f"{file:03}.txt").write_text(f"The crane of pier {file}. " * 400, encoding="utf-8")
    command = [sys.executable, "-m", "newton", "ingest", str(folder), "--agent", agent]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home, NEWTON_EMBEDDING_PROVIDER="none"),
        cwd=home,
    )
    assert child.stderr
    assert any(line.startswith("Reading: 20 of 200") for line in child.stderr)
    child.send_signal(number)
    _, trace = child.communicate(timeout=100)
    assert child.returncode == 130, trace
    (line,) = [line for line in trace.splitlines() if line.startswith("Stopped")]
    stopped = re.fullmatch(rf"Stopped at {folder}/(\d+)\.txt, after (\d+) of 200 documents\. What is stored .*", line)
    assert stopped and stopped[1] == f"{int(stopped[2]):03}" and 20 <= int(stopped[2]) < 200
    assert "passages are not embedded yet. The daemon embeds them" in trace
    again = ok(typed(home, "ingest", str(folder), "--agent", agent))
    kept = re.match(r"200 documents: [\d,]+ new passages, (\d+) unchanged, 0 replaced", again)
    assert kept and int(kept[1]) > 0, again


@pytest.mark.slow
def test_a_watched_folder_is_ingested_when_it_changes(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "watched"
    folder.mkdir()
    (folder / "ferry.md").write_text("The ferry is called Artemis.", encoding="utf-8")
    command = [sys.executable, "-m", "newton", "ingest", str(folder), "--watch", "--agent", "watcher"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home, NEWTON_EMBEDDING_PROVIDER="none"),
        cwd=home,
    ) as child:
        assert child.stdout
        assert child.stderr
        assert child.stdout.readline().startswith("1 document: 1 new passage")
        while not child.stderr.readline().startswith("Watching"):
            pass
        (folder / "quay.md").write_text("The quay is of granite.", encoding="utf-8")
        assert child.stdout.readline().startswith("2 documents: 1 new passage")
        (folder / "ferry.md").unlink()
        assert child.stdout.readline().startswith("1 document: 0 new passages")
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=100)
    assert child.returncode == 0
    assert kept(home, "watcher") == {"granite"}


def test_a_folder_that_cannot_be_listed_costs_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list_children = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path.name == "more":
            raise PermissionError(13, "Permission denied")
        return list_children(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    found = find_documents(folder)
    assert folder / "ferry.md" in found.documents
    assert found.skipped.examples["folder that cannot be read"] == [str(folder / "more")]
