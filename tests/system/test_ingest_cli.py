"""`newton ingest` takes in what is in the folder that was named, and nothing that a link leads to elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

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
    asked = ("recall", "ferry quay door letter", "--kind", "passage", "--json", "--limit", "50", "--agent", agent)
    found: dict[str, Any] = json.loads(ok(typed(home, *asked)))
    return {
        words for one in found["items"] for words in ("Artemis", "granite", "door", "sealed") if words in one["text"]
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
